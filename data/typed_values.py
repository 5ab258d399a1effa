"""Values as people write them, read as numbers with units, dates, times of day, durations, booleans or text.

Source text stays with its cell; this is what the cell holds for computing. Numbers keep the unit they were written in until a column
decides on one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

ColumnType = Literal["number", "date", "time", "duration", "boolean", "text"]
COLUMN_TYPES: tuple[ColumnType, ...] = ("number", "date", "time", "duration", "boolean", "text")


@dataclass(frozen=True)
class TypedValue:
    """A value of a type: a number (in ``unit``), a date, minutes of the day, seconds, a truth value or text."""

    type: ColumnType
    value: float | date | bool | str
    unit: str = ""


def read_value(text: str, kind: ColumnType, *, day_first: bool = False) -> TypedValue | None:
    """Read a text as a value of a type; None where it is none."""
    raise NotImplementedError


def in_unit(value: TypedValue, unit: str) -> TypedValue | None:
    """The number in another unit; None where it cannot be converted."""
    raise NotImplementedError


@dataclass(frozen=True)
class TypedColumn:
    """The values of a column in one unit; None where a text is not of its type or cannot be converted."""

    type: ColumnType
    unit: str
    cells: tuple[float | date | bool | str | None, ...]


def type_column(texts: Sequence[str], kind: ColumnType) -> TypedColumn:
    """Read a whole column: its unit is that of most values, then the first."""
    raise NotImplementedError


def guess_type(texts: Sequence[str]) -> ColumnType:
    """The type that fits the texts."""
    raise NotImplementedError
