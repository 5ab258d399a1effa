"""Values as people write them, read as numbers with units, dates, times of day, durations, booleans or text.

Source text stays with its cell; this is what the cell holds for computing. Numbers keep the unit they were written in until a column
decides on one. How each type is written is decided in `data.written_values`, which spellings are one unit in `data.units`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from data.units import TIME, convert, unit_key
from data.values import format_number
from data.written_values import (
    CLOCK,
    plain,
    shown_order,
    written_boolean,
    written_date,
    written_duration,
    written_number,
    written_time,
)

ColumnType = Literal["number", "date", "time", "duration", "boolean", "text"]
COLUMN_TYPES: tuple[ColumnType, ...] = ("number", "date", "time", "duration", "boolean", "text")


@dataclass(frozen=True)
class TypedValue:
    """A value of a type: a number (in ``unit``), a date, minutes of the day, seconds, a truth value or text.

    A duration's ``value`` is always in seconds; its ``unit`` is the one it was written in ("min", "hrs", "h:mm:ss") and is shown in.
    Other types have no unit.
    """

    type: ColumnType
    value: float | date | bool | str
    unit: str = ""


def read_value(text: str, kind: ColumnType, *, day_first: bool | None = None, unit: str = "") -> TypedValue | None:
    """Read a text as a value of a type; None where it is none. Never raises, whatever the text.

    Args:
        text: the value as written, all of it: "61 bpm", not "it was 61 bpm".
        kind: the type to read it as.
        day_first: the order of a date like 12/03/2026; None: month first with "/", day first with "." and "-".
        unit: the unit of a number or duration that is written without one.
    """
    if kind == "text":
        stripped = text.strip()
        return TypedValue("text", stripped) if stripped and _is_unicode(stripped) else None
    written = plain(text)
    value: float | date | bool | None = None
    match kind:
        case "number":
            if number := written_number(written):
                return TypedValue("number", number[0], number[1] or unit)
        case "duration":
            return _read_duration(written, unit)
        case "date":
            value = written_date(written, day_first)
        case "time":
            value = written_time(written)
        case "boolean":
            value = written_boolean(written)
    return None if value is None else TypedValue(kind, value)


def _read_duration(written: str, unit: str) -> TypedValue | None:
    if duration := written_duration(written):
        return TypedValue("duration", *duration)
    number = written_number(written)
    if number is None or number[1]:
        return None
    seconds = convert(number[0], unit, "s")
    return None if seconds is None else TypedValue("duration", seconds, unit)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no file and no database holds
        return False
    return True


def in_unit(value: TypedValue, unit: str) -> TypedValue | None:
    """The number in another unit; None where it cannot be converted.

    A number without a unit is taken to be in the asked one. A duration stays in seconds and is only shown in the asked unit. Values of
    other types are not converted.
    """
    if value.type == "duration":
        return replace(value, unit=unit) if unit == CLOCK or unit_key(unit)[0] == TIME else None
    if value.type != "number" or not isinstance(value.value, float | int):
        return None
    converted = convert(value.value, value.unit or unit, unit)
    return None if converted is None else TypedValue("number", converted, unit)


@dataclass(frozen=True)
class TypedColumn:
    """The values of a column in one unit; None where a text is not of its type or cannot be converted.

    The cells of a duration column are in seconds, and ``unit`` is what they are shown in. Other types than numbers and durations have
    the unit "".
    """

    type: ColumnType
    unit: str
    cells: tuple[float | date | bool | str | None, ...]


def type_column(texts: Sequence[str], kind: ColumnType) -> TypedColumn:
    """Read a whole column: its unit is that of most values that have one, then the first; spelled as most of them, then the first.

    Values in convertible units are converted, numbers without a unit are taken to be in the column's (displays often leave it out),
    other units are None. Dates whose order is open follow those of the column that show theirs (25/03/2026), if these agree.
    """
    orders = {shown_order(plain(text)) for text in texts} - {None} if kind == "date" else set()
    day_first = orders.pop() if len(orders) == 1 else None
    readings = [read_value(text, kind, day_first=day_first) for text in texts]
    units = [reading.unit for reading in readings if reading and reading.unit]
    if not units:
        return TypedColumn(kind, "", tuple(None if reading is None else reading.value for reading in readings))
    key = Counter(map(unit_key, units)).most_common(1)[0][0]  # the first of equally many
    unit = Counter(unit for unit in units if unit_key(unit) == key).most_common(1)[0][0]
    if kind == "duration":
        readings = [reading or read_value(text, kind, unit=unit) for text, reading in zip(texts, readings, strict=True)]
    converted = [None if reading is None else in_unit(reading, unit) for reading in readings]
    return TypedColumn(kind, unit, tuple(None if reading is None else reading.value for reading in converted))


_GUESSES: tuple[ColumnType, ...] = ("boolean", "time", "date", "duration", "number")


def guess_type(texts: Sequence[str]) -> ColumnType:
    """The first of boolean, time, date, duration and number that gives four in five of the non-empty texts a cell, else text.

    Texts like 1:23:45 are durations, not times of day, and "45 m" is one only beside another unit of time.
    """
    filled = [text for text in texts if text.strip()]
    fitting = {}
    for kind in _GUESSES:
        column = type_column(filled, kind)
        if filled and 5 * sum(cell is not None for cell in column.cells) >= 4 * len(filled):
            fitting[kind] = column
    if "duration" in fitting and all(_is_metres(text) for text in filled):
        del fitting["duration"]
    if "duration" in fitting and fitting["duration"].unit == CLOCK:
        return "duration"
    return next(iter(fitting), "text")


def _is_metres(text: str) -> bool:
    number = read_value(text, "number", unit="m")
    return number is not None and unit_key(number.unit) == unit_key("m")


def show_value(value: float | date | bool | str, kind: ColumnType, unit: str = "") -> str:
    """Write a column's value for people, numbers as `format_number` does.

    Durations (in seconds) are shown in ``unit``, without one in seconds. Times (in minutes) are rounded to the second and, as differences
    and sums of times, below 0 and from 24 hours on shown in minutes.

    >>> show_value(4710.0, "duration", "min"), show_value(450.0, "time"), show_value(True, "boolean")
    ('78.5 min', '07:30', 'yes')
    """
    if kind == "date" and isinstance(value, date):
        return value.isoformat()
    if kind == "boolean":
        return "yes" if value else "no"
    if kind == "text" or not isinstance(value, float | int):
        return str(value)
    if kind == "duration":
        shown = convert(value, "s", unit)
        if unit == CLOCK:
            return _clock(value)
        return format_number(value, "s") if shown is None else format_number(shown, unit)
    if kind == "time":
        return _time_of_day(value) if 0 <= value < 1440 else format_number(value, "min")
    return format_number(value, unit)


def _clock(seconds: float) -> str:
    whole, point, decimals = format_number(abs(seconds)).partition(".")
    minutes, rest = divmod(int(whole), 60)
    return f"{'-' if seconds < 0 else ''}{minutes // 60}:{minutes % 60:02}:{rest:02}{point}{decimals}"


def _time_of_day(minutes: float) -> str:
    seconds = min(round(minutes * 60), 86_399)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}" + (f":{seconds % 60:02}" if seconds % 60 else "")
