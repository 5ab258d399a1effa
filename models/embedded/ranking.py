"""Which statements speak of a question's topic: overlap of stems, rare ones counting more."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.embedded.evidence import Statement

_CONTEXT = 0.75
"""What a match in a statement's context counts, against one in the statement."""
_SMOOTHING = 20
"""Statements of other topics that are imagined beside the shown ones, so that rarity means something in short evidence."""


@dataclass(frozen=True)
class Ranked:
    """A statement with the share of the topic's weight that it covers, from 0 to 1."""

    statement: Statement
    coverage: float


def topic_weights(topic: Sequence[tuple[str, float]], statements: Sequence[Statement]) -> dict[str, float]:
    """The weight of each topic stem: its own times its inverse document frequency over the statements."""
    wanted = {stem for stem, _ in topic}
    counts: Counter[str] = Counter()
    for statement in statements:
        counts.update(wanted & statement.stems)
    total = len(statements) + _SMOOTHING
    return {stem: weight * math.log(1.0 + total / (1.0 + max(counts[stem], 1))) for stem, weight in topic}


def rank(weights: Mapping[str, float], statements: Sequence[Statement], *, latest: bool = False) -> list[Ranked]:
    """The statements that share a stem with the topic, best first; ties go to the later one if ``latest``, else the earlier."""
    total = sum(weights.values())
    if not total:
        return []
    wanted = frozenset(weights)
    ranked = []
    for statement in statements:
        own = wanted & statement.stems
        near = (wanted & statement.context) - own
        if own or near:
            covered = sum(weights[stem] for stem in own) + _CONTEXT * sum(weights[stem] for stem in near)
            asks = 0.8 if statement.text.endswith("?") else 1.0
            ranked.append(Ranked(statement, asks * covered / total))
    sign = -1 if latest else 1
    return sorted(ranked, key=lambda found: (-round(found.coverage, 6), _day_order(found.statement, sign), sign * found.statement.order))


def _day_order(statement: Statement, sign: int) -> int:
    digits = statement.date.replace("-", "")
    return sign * int(digits) if digits.isdecimal() else 0
