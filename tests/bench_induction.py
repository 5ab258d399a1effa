"""Speed of schema induction: how it grows with the rounds, its worst cases, and batch miners of frequent sets for orientation.

Seconds are the process's own, so that other work on the machine counts less.
"""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import pandas as pd
from efficient_apriori import itemsets_from_transactions
from mlxtend.frequent_patterns import fpgrowth

from memory.adamm.induction import Induction, induce

N_ROUNDS = (12_500, 25_000, 50_000, 100_000)
N_ATTRIBUTES = 20
Rounds = list[frozenset[str]]


def induction_speeds() -> list[list[str]]:
    """Rows of the bench: each kind of history at each length, the wide rounds, and the batch miners."""
    rows = []
    for what, make in _KINDS.items():
        histories = [make(n) for n in N_ROUNDS]
        seconds = [_seconds(lambda rounds=rounds: _induce(rounds)) for rounds in histories]
        shorter = ", ".join(f"{n / 1000:g}k {some:.2f} s" for n, some in zip(N_ROUNDS[:-1], seconds, strict=False))
        growth = ", ".join(f"{after / before:.1f}" for before, after in pairwise(seconds))
        rows.append([f"{N_ROUNDS[-1]:,} rounds: {what}", f"{seconds[-1]:.2f} s", shorter, f"{growth} ×", "≈ 2 ×"])
    wide = frozenset(_names(60))
    for what, rounds, aim in (
        ("in one round", [wide], "< 1 s"),
        ("unchanged in ten rounds", [wide] * 10, "< 1 s"),
        ("each missed in 10 % of 10 rounds", _by_chance(10, share=0.9, n_attributes=60), "< 10 s"),
        ("each missed in 10 % of 30 rounds", _by_chance(30, share=0.9, n_attributes=60), "< 10 s"),
    ):
        capped = sum(event.kind == "capped" for event in _induce(rounds).events)
        rows.append([f"60 attributes {what}", f"{_seconds(lambda r=rounds: _induce(r)):.2f} s", f"{capped} rounds capped", "", aim])
    return [*rows, *_batch_rows(_record_types(N_ROUNDS[0]))]


def _batch_rows(rounds: Rounds) -> list[list[str]]:
    ours = _seconds(lambda: _induce(rounds))
    table = pd.DataFrame([[name in some for name in _names(N_ATTRIBUTES)] for some in rounds], columns=_names(N_ATTRIBUTES))
    transactions = [tuple(sorted(some)) for some in rounds]
    rows = []
    for name, mine in (
        ("mlxtend's fpgrowth", lambda: fpgrowth(table, min_support=0.05)),
        ("efficient-apriori", lambda: itemsets_from_transactions(transactions, 0.05, max_length=N_ATTRIBUTES)),
    ):
        seconds = _seconds(mine)
        what = f"{N_ROUNDS[0]:,} rounds of record types, schemas judged every round"
        rows.append([what, f"{ours:.2f} s", f"{name} {seconds:.2f} s: once, supports over 5 % only", f"{seconds / ours:.1f} ×", ""])
    return rows


def _induce(rounds: Sequence[frozenset[str]]) -> Induction:
    return induce(rounds, min_support=4, min_all_conf=0.6, min_ext_conf=0.8)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _names(n: int) -> list[str]:
    return [f"attribute_{number:02}" for number in range(n)]


def _by_chance(n: int, *, share: float, n_attributes: int = N_ATTRIBUTES) -> Rounds:
    draw = Random(0)
    return [frozenset(name for name in _names(n_attributes) if draw.random() < share) for _ in range(n)]


def _record_types(n: int) -> Rounds:
    """Four types of four to eight attributes, 5 % of these missed, each other attribute there in 10 %."""
    draw = Random(0)
    types = [set(draw.sample(_names(N_ATTRIBUTES), draw.randint(4, 8))) for _ in range(4)]
    rounds = []
    for _ in range(n):
        kind = draw.choice(types)
        rounds.append(frozenset(name for name in _names(N_ATTRIBUTES) if draw.random() < (0.95 if name in kind else 0.1)))
    return rounds


def _optional_fields(n: int) -> Rounds:
    """Two types of eight and six attributes, always there, with three others each that come in 70 % and 65 %: often rejected."""
    draw = Random(0)
    names = _names(N_ATTRIBUTES)
    types = [(names[:8], names[8:11], 0.7), (names[11:17], names[17:], 0.65)]
    rounds = []
    for _ in range(n):
        fixed, optional, share = draw.choice(types)
        rounds.append(frozenset([*fixed, *(name for name in optional if draw.random() < share)]))
    return rounds


_KINDS: dict[str, Callable[[int], Rounds]] = {
    "four record types with noise": _record_types,
    "two types with optional fields": _optional_fields,
    **{f"each attribute in {share:.0%}": lambda n, share=share: _by_chance(n, share=share) for share in (0.3, 0.6, 0.7, 0.9)},
}
