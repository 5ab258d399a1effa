"""Tests of schema induction worked out by hand, of its bounds, and of what it makes of records that are read with mistakes."""

import time
from collections.abc import Sequence
from random import Random

import pytest

from memory.adamm.induction import Induction, induce


def _rounds(words: str) -> list[frozenset[str]]:
    """One round a word, one attribute a letter; "-" is a round without any."""
    return [frozenset(word.replace("-", "")) for word in words.split()]


def _induce(rounds: Sequence[frozenset[str]], *, support: int = 2, all_conf: float = 0.6, ext_conf: float = 0.8) -> Induction:
    return induce(rounds, min_support=support, min_all_conf=all_conf, min_ext_conf=ext_conf)


def _log(found: Induction) -> list[str]:
    return [f"{e.round_order} {e.kind} {e.schema} {''.join(e.attributes)} {e.measure} {e.value:.4g}" for e in found.events]


def _tables(found: Induction) -> list[str]:
    return ["".join(schema.attributes) for schema in found.schemas]


# The rule, step by step


def test_nothing_where_nothing_recurs_together() -> None:
    for words in ("", "- - -", "a a a a b b b b", "ab cd ef"):
        assert _induce(_rounds(words)) == Induction((), ())


def test_discovery_needs_support_and_all_confidence() -> None:
    assert _tables(_induce(_rounds("ab ab ab"), support=4)) == []
    assert _log(_induce(_rounds("ab - ab ab ab"), support=4)) == ["4 discovered 0 ab all_conf 1"]
    assert _tables(_induce(_rounds("a a a ab ab"))) == _tables(_induce(_rounds("b b b ab ab"))) == []  # 2 of the more frequent one's 5
    assert _log(_induce(_rounds("a a ab ab ab"))) == ["4 discovered 0 ab all_conf 0.6"]  # 3 of 5 are six tenths


def test_discovery_admits_maximal_sets_in_sorted_order_their_attributes_sorted() -> None:
    found = _induce(_rounds("dec ba dec ba abcde"), support=3, all_conf=0.3)
    assert _log(found) == ["4 discovered 0 ab all_conf 1", "4 discovered 1 cde all_conf 1"]


def test_shares_are_compared_as_they_are_written() -> None:
    # As floating point numbers, 0.7 · 10 is above 7.
    assert _log(_induce(_rounds("a a a ab ab ab ab ab ab ab"), all_conf=0.7)) == ["9 discovered 0 ab all_conf 0.7"]
    found = _induce(_rounds("ab ab ab abc abc abc abc abc abc abc"), all_conf=0.75, ext_conf=0.7)
    assert _log(found) == ["1 discovered 0 ab all_conf 1", "9 extended 0 abc ext_conf 0.7"]


def test_evolution_appends_what_is_new_in_sorted_order() -> None:
    found = _induce(_rounds("mn mn mnzb mnzb mnzb mnzb"), all_conf=1, support=2, ext_conf=0.6)
    assert _log(found)[0] == "1 discovered 0 mn all_conf 1"
    assert "4 extended 0 mnbz ext_conf 0.6" in _log(found)


def test_evolution_takes_most_attributes_then_support_then_the_first_in_order() -> None:
    def extensions(words: str, **thresholds: float) -> list[str]:
        found = induce(_rounds(words), min_support=2, **{"min_all_conf": 1, "min_ext_conf": 0.3, **thresholds})
        return [line for line in _log(found) if " extended 0 " in line]

    assert extensions("mn mn mn mn mn mnxy mnxy mnp mnpxy") == ["8 extended 0 mnxy ext_conf 0.3333"]
    # mn is discovered in the last round but one, so in the last mnx has 5 rounds and mnp 3 of the 3 that are needed.
    late = "m m m x x x p p p mnx mnx mnx mnp mnpx mnpx"
    assert extensions(late, min_all_conf=0.6, min_ext_conf=0.4) == ["14 extended 0 mnx ext_conf 0.8333"]
    assert extensions("mn mn mn mn mnp mnx mnp mnx mnpx", min_ext_conf=0.33) == ["8 extended 0 mnp ext_conf 0.3333"]


def test_a_schema_evolves_once_a_round_and_only_in_rounds_that_hold_it() -> None:
    found = _induce(_rounds("ab ab abc abc - c ab"), all_conf=1, ext_conf=0.4)
    assert _log(found) == ["1 discovered 0 ab all_conf 1", "3 extended 0 abc ext_conf 0.5"]


def test_schemas_within_a_grown_one_are_merged_equal_ones_into_the_earliest() -> None:
    assert _log(_induce(_rounds("ab ab bc bc bc abc abc abc"), all_conf=0.4, ext_conf=0.75)) == [
        "1 discovered 0 ab all_conf 1",
        "3 discovered 1 bc all_conf 0.5",
        "6 discovered 2 ac all_conf 0.4",
        "7 extended 2 acb ext_conf 1",
        "7 merged 0 ab into 2",
        "7 merged 1 bc into 2",
    ]
    found = _induce(_rounds("ab ab cd cd" + 8 * " abcd"))
    assert _log(found)[-3:] == ["11 extended 0 abcd ext_conf 0.8", "11 extended 1 cdab ext_conf 0.8", "11 merged 1 cdab into 0"]
    assert _tables(found) == ["abcd"]


def test_a_rejection_names_each_schema_within_once_while_both_stay_as_they_are() -> None:
    assert _log(_induce(_rounds("ab ab cd cd" + 4 * " abcd")))[2:] == [
        "6 rejected 0 abcd ext_conf 0.6",
        "6 rejected 1 abcd ext_conf 0.6",
    ]
    # ab becomes abc, which the same larger set is then measured against.
    found = _induce(_rounds("ab ab ab abcd abcd abcd abc abc abc abc abc abcd abcd"), all_conf=0.3, ext_conf=0.7)
    assert _log(found) == [
        "1 discovered 0 ab all_conf 1",
        "4 rejected 0 abcd ext_conf 0.4",
        "6 rejected 0 abc ext_conf 0.5714",
        "9 extended 0 abc ext_conf 0.7",
        "11 rejected 0 abcd ext_conf 0.4444",
    ]


def test_thresholds_out_of_range_are_all_named() -> None:
    with pytest.raises(ValueError, match=r"min_support .* got 0; min_all_conf .* got 1.5; min_ext_conf .* got nan; max_tested .* got 0"):
        induce([], min_support=0, min_all_conf=1.5, min_ext_conf=float("nan"), max_tested=0)
    with pytest.raises(ValueError, match=r"^min_ext_conf must be above 0 and at most 1, got 0$"):
        induce([], min_support=1, min_all_conf=1, min_ext_conf=0)


# Bounds


def _names(n: int) -> list[str]:
    return [f"field_{number:02}" for number in range(n)]


def test_a_large_set_that_recurs_unchanged_costs_few_tests() -> None:
    rounds = [frozenset(_names(60))] * 10
    found = induce(rounds, min_support=4, min_all_conf=0.6, min_ext_conf=0.8, max_tested=100)
    assert [(event.round_order, event.kind) for event in found.events] == [(3, "discovered")]
    assert found.schemas[0].attributes == tuple(_names(60))


def test_a_large_set_with_optional_fields_costs_few_tests() -> None:
    draw = Random(0)
    rounds = [frozenset(_names(60)) | {f"option_{n}" for n in range(6) if draw.random() < 0.7} for _ in range(60)]
    found = induce(rounds, min_support=4, min_all_conf=0.6, min_ext_conf=0.8, max_tested=5000)
    assert "capped" not in {event.kind for event in found.events}


def test_a_capped_round_stops_where_it_is_and_says_so() -> None:
    draw = Random(0)
    rounds = [frozenset(name for name in _names(60) if draw.random() < 0.9) for _ in range(10)]
    start = time.process_time()
    found = induce(rounds, min_support=4, min_all_conf=0.6, min_ext_conf=0.8)
    assert time.process_time() - start < 10
    capped = [event for event in found.events if event.kind == "capped"]
    assert [event.round_order for event in capped] == [7, 8, 9]
    for event in capped:
        assert (event.schema, event.attributes, event.measure) == (None, (), "tested") and 99_000 < event.value <= 100_000
    discovered = [event for event in found.events if event.kind == "discovered"]
    assert any(event.round_order == 9 for event in discovered)  # what a capped round found counts
    for event in discovered:
        holding = [set(event.attributes) <= names for names in rounds[: event.round_order + 1]]
        assert sum(holding) >= 4 and event.value >= 0.6


def test_fewer_tests_are_never_more_schemas_of_the_round() -> None:
    draw = Random(1)
    rounds = [frozenset(name for name in _names(12) if draw.random() < 0.8) for _ in range(5)]
    whole = induce(rounds, min_support=3, min_all_conf=0.6, min_ext_conf=1)
    first = min(event.round_order for event in whole.events if event.kind == "discovered")
    full = {event.attributes for event in whole.events if event.round_order == first}
    sizes = []
    for max_tested in (1, 30, 60, 120, 240, 480):
        cut = induce(rounds, min_support=3, min_all_conf=0.6, min_ext_conf=1, max_tested=max_tested)
        some = {event.attributes for event in cut.events if event.round_order == first and event.kind == "discovered"}
        assert some <= full
        sizes.append(len(some))
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1] == len(full)


# Records read with mistakes


def _dashboard(seed: int, n_others: int, share: float) -> list[frozenset[str]]:
    """30 rounds of eight fields, each missed in 5 % of the rounds, and other attributes that occur by chance."""
    draw = Random(f"dashboard {seed}")
    fields, others = _names(8), [f"other_{n}" for n in range(n_others)]
    return [
        frozenset([*(field for field in fields if draw.random() >= 0.05), *(other for other in others if draw.random() < share)])
        for _ in range(30)
    ]


@pytest.mark.parametrize(
    ("n_others", "share", "at_least"),
    # Attributes that come by chance, but often, make tables of their own that take in fields: the more, the rarer a single table.
    [(0, 0.0, 99), (100, 0.01, 99), (40, 0.04, 99), (10, 0.1, 98), (10, 0.2, 80)],
)
def test_a_dashboard_read_with_mistakes_is_one_table(n_others: int, share: float, at_least: int) -> None:
    fields, n_single = set(_names(8)), 0
    for seed in range(100):
        found = induce(_dashboard(seed, n_others, share), min_support=4, min_all_conf=0.6, min_ext_conf=0.8)
        tables = [set(schema.attributes) for schema in found.schemas if fields & set(schema.attributes)]
        n_single += len(tables) == 1 and tables[0] >= fields and (n_others > 0 or len(found.schemas) == 1)
    assert n_single >= at_least
