"""Schema induction against the rule read literally: every subset of every round listed, every share a fraction."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import get_args

import pytest

from memory.adamm.induction import Induction, induce
from memory.adamm.model import EventKind, Schema, SchemaEvent

Set = frozenset[str]


def _subsets(attributes: Set) -> list[Set]:
    return [frozenset(some) for size in range(1, len(attributes) + 1) for some in combinations(sorted(attributes), size)]


def _literal(rounds: Sequence[Set], min_support: int, min_all_conf: float, min_ext_conf: float) -> Induction:
    all_conf, ext_conf = Fraction(str(min_all_conf)), Fraction(str(min_ext_conf))
    supp: Counter[Set] = Counter()
    schemas: dict[int, tuple[str, ...]] = {}  # by number, so in order of creation
    events: list[SchemaEvent] = []
    rejected: set[tuple[Set, int, Set]] = set()
    n_created = 0
    for t, present in enumerate(rounds):
        supp.update(_subsets(present))
        candidates = [c for c in _subsets(present) if len(c) >= 2 and supp[c] >= min_support]

        for number, columns in schemas.items():
            a = frozenset(columns)
            able = [c for c in candidates if c > a and Fraction(supp[c], supp[a]) >= ext_conf]
            if able:
                c = min(able, key=lambda c: (-len(c), -supp[c], sorted(c)))
                schemas[number] = (*columns, *sorted(c - a))
                events.append(SchemaEvent(t, "extended", number, schemas[number], "ext_conf", supp[c] / supp[a]))

        sets = {number: frozenset(columns) for number, columns in schemas.items()}
        into = {n: [m for m in sets if sets[n] < sets[m] or (sets[n] == sets[m] and m < n)] for n in sets}
        for number, larger in into.items():
            if larger:
                survivor = next(m for m in larger if not into[m])
                events.append(SchemaEvent(t, "merged", number, schemas.pop(number), "into", survivor))
                del sets[number]

        def confidence(c: Set) -> Fraction:
            return Fraction(supp[c], max(supp[frozenset([attribute])] for attribute in c))

        novel = [c for c in candidates if confidence(c) >= all_conf and not any(c <= a for a in sets.values())]
        maximal = sorted((c for c in novel if not any(c < other for other in novel)), key=sorted)
        admitted = []
        for c in maximal:
            within = [number for number, a in sets.items() if a <= c]
            for number in within:
                if (c, number, sets[number]) not in rejected:
                    rejected.add((c, number, sets[number]))
                    events.append(SchemaEvent(t, "rejected", number, tuple(sorted(c)), "ext_conf", supp[c] / supp[sets[number]]))
            admitted += [] if within else [c]
        for c in admitted:
            schemas[n_created] = tuple(sorted(c))
            events.append(SchemaEvent(t, "discovered", n_created, schemas[n_created], "all_conf", float(confidence(c))))
            n_created += 1
    return Induction(tuple(Schema(number, columns) for number, columns in schemas.items()), tuple(events))


def _history(draw: Random, *, n_attributes: int, n_rounds: int) -> list[Set]:
    """Record types whose attributes are there always, mostly, often or by chance; the types may change once in a while."""
    names = "abcdefgh"[:n_attributes]
    shares, change = draw.choice([[1, 0], [1, 0.95, 0.1], [0.85, 0.1], [0.7, 0.2], [1, 0.75, 0.65, 0]]), draw.choice([0, 0, 0.02])
    types: list[dict[str, float]] = []
    rounds = []
    for _ in range(n_rounds):
        if not types or draw.random() < change:
            types = [{name: draw.choice(shares) for name in names} for _ in range(draw.randint(1, 3))]
        rounds.append(frozenset(name for name, share in draw.choice(types).items() if draw.random() < share))
    return rounds


def _thresholds(draw: Random, supports: Sequence[int]) -> tuple[int, float, float]:
    return draw.choice(supports), draw.choice([0.3, 0.5, 0.6, 0.6, 0.7, 1.0]), draw.choice([0.55, 0.7, 0.8, 0.8, 0.9, 1.0])


@pytest.mark.parametrize(
    ("seeds", "n_attributes", "n_rounds", "supports"),
    # A support that takes long to reach lets things happen late in long histories, after rounds that needed no search.
    [(3000, 6, 15, [1, 2, 3, 4]), (600, 7, 15, [3, 4]), (200, 6, 200, [4, 15, 30]), (60, 7, 400, [4, 20, 60])],
)
def test_equals_the_literal_rule(seeds: int, n_attributes: int, n_rounds: int, supports: list[int]) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(seeds):
        draw = Random(f"{seed} {n_attributes} {n_rounds}")
        rounds = _history(draw, n_attributes=draw.randint(2, n_attributes), n_rounds=draw.randint(0, n_rounds))
        min_support, min_all_conf, min_ext_conf = _thresholds(draw, supports)
        found = induce(rounds, min_support=min_support, min_all_conf=min_all_conf, min_ext_conf=min_ext_conf)
        assert found == _literal(rounds, min_support, min_all_conf, min_ext_conf), (seed, rounds, min_support, min_all_conf, min_ext_conf)
        kinds.update(event.kind for event in found.events)
    assert set(kinds) == set(get_args(EventKind)) - {"capped"} and min(kinds.values()) > 10, kinds


def test_equals_the_literal_rule_where_a_rejected_set_stops_being_a_candidate() -> None:
    for seed in (45, 78, 115):  # where it matters that the set's own share falls in rounds that need no search
        draw = Random(seed)
        block = 20 * ["abced"] + draw.randint(11, 13) * ["abce"] + draw.randint(11, 13) * ["ad"] + draw.randint(4, 8) * ["a"]
        words = 4 * ["be"] + 4 * ["ac"]
        for _ in range(draw.randint(1, 3)):
            draw.shuffle(block)
            words += block
        last = draw.choice([["ab", "ac"], ["ab", "ac", "a"], ["abc", "a", "a"], ["abcd", "ab", "ac"], ["a", "ab", "bce"]])
        words += [*(draw.choice(last) for _ in range(draw.randint(5, 30))), *(2 * ["abc", "abcd", "abce"])]
        rounds = [frozenset(word) for word in words]
        assert induce(rounds, min_support=4, min_all_conf=0.6, min_ext_conf=1) == _literal(rounds, 4, 0.6, 1), seed


def test_the_past_does_not_depend_on_the_future() -> None:
    for seed in range(40):
        draw = Random(seed)
        rounds = _history(draw, n_attributes=6, n_rounds=40)
        min_support, min_all_conf, min_ext_conf = _thresholds(draw, [2, 4])
        runs = [
            induce(rounds[:n], min_support=min_support, min_all_conf=min_all_conf, min_ext_conf=min_ext_conf).events
            for n in range(0, 41, 4)
        ]
        for n, events in zip(range(0, 41, 4), runs, strict=True):
            assert events == tuple(event for event in runs[-1] if event.round_order < n)
