"""What a question, or the goal of a step, wants of a table: which column, which rows, which computation."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from models.embedded.dates import asked_ranges
from models.embedded.english import stem_set
from models.embedded.question import Asked, parse_question
from models.embedded.question_kinds import Kind
from models.tasks.planning import ContextColumn, ContextTable

_HIGH = r"highest|maximum|largest|biggest|longest|greatest|most|top"
_LOW = r"lowest|minimum|smallest|shortest|least|fewest"
_EXTREME = re.compile(rf"\b(?:(?P<high>{_HIGH})|(?P<low>{_LOW}))\b", re.IGNORECASE)
_DAY_OF = re.compile(
    r"\bon (?:the )?(?:same )?(?:day|date|morning|evening|night) (?:of|when|that|on which) (?P<event>[^?,]+)", re.IGNORECASE
)
_WANTS_DAY = re.compile(r"\b(?:which|what) (?:day|date)\b|\bwhen\b", re.IGNORECASE)
_OPERATORS = {
    Kind.AVERAGE: "average",
    Kind.HIGHEST: "maximum",
    Kind.LOWEST: "minimum",
    Kind.TOTAL: "sum",
    Kind.COUNT: "count",
    Kind.TREND: "difference",
}
_COMPARISONS = {"at least": ">=", "at most": "<="}
_ABOVE = frozenset({"above", "over", "more than", "greater than", "exceed", "exceeds", "exceeded", "higher than", "longer than"})


@dataclass(frozen=True)
class Extreme:
    """A highest or lowest value that is asked for."""

    column: ContextColumn
    is_high: bool


@dataclass(frozen=True)
class TableQuestion:
    """A question about a column of a table.

    ``operator`` is that of Compute; ``extremes`` are the columns whose extremes are asked for, in order; ``wants_day`` asks for the day of
    one; ``event`` is the happening whose day is meant ("" for none); ``conditions`` are column filters as the tools take them.
    """

    table: ContextTable
    column: ContextColumn
    operator: str
    extremes: tuple[Extreme, ...]
    wants_day: bool
    event: str
    conditions: tuple[dict[str, Any], ...]


def read_table_question(text: str, tables: tuple[ContextTable, ...], *, whole: str = "") -> TableQuestion | None:
    """Read a question or a goal; None if it names no column of the tables.

    Args:
        text: the question, or the goal of one step.
        tables: of the planning context, best first.
        whole: the whole question, whose days also hold for the goal.
    """
    asked = parse_question(text)
    found = _column(text, asked, tables)
    if found is None:
        return None
    table, column = found
    event = _DAY_OF.search(whole or text)
    return TableQuestion(
        table,
        column,
        _OPERATORS.get(asked.kind, "last"),
        _extremes(text, table),
        bool(_WANTS_DAY.search(whole or text)),
        event["event"].strip() if event else "",
        (*_days(whole or text), *_origin(asked), *_threshold(asked, column)),
    )


def spoken(column: ContextColumn) -> str:
    """A column's name as it is said."""
    return column.name.replace("_", " ")


def day_condition(day: str) -> dict[str, Any]:
    """The filter for the rows of one ISO day."""
    return {"column": "time", "operator": "=", "value": day}


def _column(text: str, asked: Asked, tables: tuple[ContextTable, ...]) -> tuple[ContextTable, ContextColumn] | None:
    """The column with most words that the question names all of; then of the table sharing most other words, then the best ranked."""
    said = asked.stems | stem_set(text)
    best: tuple[tuple[int, int, int], ContextTable, ContextColumn] | None = None
    for place, table in enumerate(tables):
        about = stem_set(f"{table.name.replace('_', ' ')} {table.description}")
        for column in table.columns:
            name = _stems(column.name)
            if name and name <= said:
                rank = (len(name), len(about & said), -place)
                if best is None or rank > best[0]:
                    best = (rank, table, column)
    return best and best[1:]


@lru_cache(maxsize=10_000)
def _stems(name: str) -> frozenset[str]:
    return stem_set(name.replace("_", " "))


def _extremes(text: str, table: ContextTable) -> tuple[Extreme, ...]:
    """Each extreme word with the column that is named soonest after it, before the next extreme word."""
    words = list(_EXTREME.finditer(text))
    found = []
    for place, word in enumerate(words):
        after = text[word.end() : words[place + 1].start() if place + 1 < len(words) else len(text)]
        said = stem_set(after)
        named = [column for column in table.columns if _stems(column.name) and _stems(column.name) <= said]
        if named:
            found.append(Extreme(max(named, key=lambda column: len(_stems(column.name))), word["high"] is not None))
    return tuple(found)


def _days(text: str) -> tuple[dict[str, Any], ...]:
    ranges = asked_ranges(text, frozenset())
    if not ranges:
        return ()
    first, last = min(one.first for one in ranges), max(one.last for one in ranges)
    if first == last:
        return (day_condition(first.isoformat()),)
    return ({"column": "time", "operator": "between", "value": [first.isoformat(), last.isoformat()]},)


def _origin(asked: Asked) -> tuple[dict[str, Any], ...]:
    """Whether what was written or what a picture shows is meant: rows of rounds without and with images."""
    if asked.from_text == asked.from_picture:
        return ()
    return ({"column": "captions", "operator": "is_null", "value": asked.from_text},)


def _threshold(asked: Asked, column: ContextColumn) -> tuple[dict[str, Any], ...]:
    if asked.threshold is None:
        return ()
    sense, number = asked.threshold
    operator = _COMPARISONS.get(sense, ">" if sense in _ABOVE else "<")
    return ({"column": column.name, "operator": operator, "value": f"{number} {column.unit}".strip()},)
