"""Conversion, whole columns, the guess of a type, printing back, and that no text whatever raises."""

import math
from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data.sample.draws import number_rule
from data.sample.vocabulary import load_vocabulary
from data.typed_values import (
    COLUMN_TYPES,
    ColumnType,
    TypedColumn,
    TypedValue,
    guess_type,
    in_unit,
    read_value,
    show_value,
    type_column,
)
from data.values import format_number

MARCH_12 = date(2026, 3, 12)


def test_in_unit() -> None:
    assert in_unit(TypedValue("number", 5.5, "km"), "m") == TypedValue("number", 5500, "m")
    assert in_unit(TypedValue("number", 5.5, "hours"), "hrs") == TypedValue("number", 5.5, "hrs")
    assert in_unit(TypedValue("number", 5.5), "bpm") == TypedValue("number", 5.5, "bpm")
    assert in_unit(TypedValue("number", 5.5), "") == TypedValue("number", 5.5)
    assert in_unit(TypedValue("number", 5.5, "bpm"), "") is None
    assert in_unit(TypedValue("number", 5.5, "USD"), "EUR") is None
    assert in_unit(TypedValue("number", math.nan, "km"), "m") is None
    assert in_unit(TypedValue("duration", 90, "s"), "h:mm:ss") == TypedValue("duration", 90, "h:mm:ss")
    assert in_unit(TypedValue("duration", 90, "s"), "min") == TypedValue("duration", 90, "min")
    assert in_unit(TypedValue("duration", 90, "s"), "km") is None
    assert in_unit(TypedValue("text", "5 km"), "m") is None
    assert in_unit(TypedValue("boolean", True), "m") is None


def cells(*texts: str, kind: ColumnType) -> tuple[object, ...]:
    return type_column(texts, kind).cells


def test_a_columns_unit_is_that_of_most_values() -> None:
    assert type_column(["5 km", "500 m", "250 m", "3", "2 kg", "", "some"], "number") == TypedColumn(
        "number", "m", (5000, 500, 250, 3, None, None, None)
    )


def test_then_that_of_the_first() -> None:
    assert type_column(["500 m", "5 km"], "number") == TypedColumn("number", "m", (500, 5000))
    assert type_column(["5 km", "500 m"], "number") == TypedColumn("number", "km", (5, 0.5))
    assert type_column(["$5", "€6"], "number") == TypedColumn("number", "USD", (5, None))


def test_spellings_count_as_one_unit() -> None:
    assert type_column(["1 hour", "90 min", "30 min", "3 hrs", "2 hrs"], "number") == TypedColumn("number", "hrs", (1, 1.5, 0.5, 3, 2))


def test_numbers_without_units_stay_without() -> None:
    assert type_column(["5", "7.5", "yes"], "number") == TypedColumn("number", "", (5, 7.5, None))


def test_one_unit_is_that_of_bare_numbers_too() -> None:
    assert type_column(["5", "6", "7 bpm"], "number") == TypedColumn("number", "bpm", (5, 6, 7))


def test_a_duration_column_is_in_seconds_and_remembers_its_unit() -> None:
    column = type_column(["78 min", "1 h 30 min", "61", "79 min", "3 kg"], "duration")
    assert column == TypedColumn("duration", "min", (4680, 5400, 3660, 4740, None))
    assert type_column(["61", "62"], "duration") == TypedColumn("duration", "", (None, None))  # of what?


@pytest.mark.parametrize(
    ("texts", "months"),
    [
        (("12/03/2026", "25/03/2026"), (3, 3)),  # the second shows that the day is first
        (("25.03.2026", "12/03/2026"), (3, 3)),  # for all separators
        (("12.03.2026", "03.25.2026"), (12, 3)),
        (("12/03/2026", "11/03/2026"), (12, 11)),  # none shows it: "/" has the month first
        (("12.03.2026", "11.03.2026"), (3, 3)),
        (("12/03/2026", "12.03.2026", "25/03/2026", "03/25/2026"), (12, 3, 3, 3)),  # they contradict each other
        (("12/03/2026", "2026-03-25"), (12, 3)),  # ISO shows nothing
    ],
)
def test_the_order_of_a_column_of_dates(texts: tuple[str, ...], months: tuple[int, ...]) -> None:
    assert tuple(cell.month for cell in type_column(texts, "date").cells if isinstance(cell, date)) == months


def test_cells_of_another_type_are_none() -> None:
    mixed = ["yes", "7:30", "2026-03-12", "45 min", "61 bpm", "", "some words"]
    assert cells(*mixed, kind="boolean") == (True, None, None, None, None, None, None)
    assert cells(*mixed, kind="time") == (None, 450, None, None, None, None, None)
    assert cells(*mixed, kind="date") == (None, None, MARCH_12, None, None, None, None)
    assert cells(*mixed, kind="duration") == (None, None, None, 2700, None, None, None)
    assert cells(*mixed, kind="text") == ("yes", "7:30", "2026-03-12", "45 min", "61 bpm", None, "some words")
    assert cells(kind="number") == ()


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["yes", "no"], "boolean"),
        (["on", "off", ""], "boolean"),
        (["7:30", "19h30", "8 pm"], "time"),
        (["2026-03-12", "12/03/2026"], "date"),
        (["55 min"], "duration"),
        (["5 h 30 min", "6.5 hrs"], "duration"),
        (["1:23:45", "0:58:10"], "duration"),
        (["07:30:15 am", "7:30", "7:40"], "time"),
        (["45 m", "1 h 5 m"], "duration"),
        (["340 m", "120 m"], "number"),
        (["340 m", "120"], "number"),
        (["61 bpm", "58 bpm"], "number"),
        (["5", "7.5"], "number"),
        (["14.5 degrees"], "number"),
        (["$5", "7"], "number"),
        (["3 years", "2 months"], "number"),
        (["5 km", "3 kg"], "text"),  # no unit for four in five
        (["3 dogs", "2 cats", "a bird"], "text"),
        (["oak", "elm"], "text"),
        (["5", "6", "7", "8", "n/a"], "number"),  # four in five
        (["5", "6", "7", "n/a"], "text"),
        (["7:30", "7:40", "7:50", "7:55", "61 bpm"], "time"),
        (["", " "], "text"),
        ([], "text"),
    ],
)
def test_guesses(texts: list[str], kind: ColumnType) -> None:
    assert guess_type(texts) == kind


def test_every_field_of_the_samples_dashboards_reads_and_prints_as_it_is_drawn() -> None:
    durations = {"ms", "s", "min", "h", "days"}
    fields = [field.split(": ") for kind in load_vocabulary().dashboards for field in kind.fields]
    for label, rule in fields:
        numbers = number_rule(rule)
        texts = [format_number(value, numbers.unit) for value in (numbers.low, numbers.high)]
        kind = guess_type(texts)
        assert kind == ("duration" if numbers.unit in durations else "number"), label
        column = type_column(texts, kind)
        assert [cell is not None and show_value(cell, kind, column.unit) for cell in column.cells] == texts, label


@pytest.mark.parametrize(
    ("value", "kind", "unit", "text"),
    [
        (71.5, "number", "bpm", "71.5 bpm"),
        (1200, "number", "", "1200"),
        (4710, "duration", "min", "78.5 min"),
        (19800, "duration", "hrs", "5.5 hrs"),
        (90.5, "duration", "", "90.5 s"),
        (5025, "duration", "h:mm:ss", "1:23:45"),
        (5025.5, "duration", "h:mm:ss", "1:23:45.5"),
        (1e30, "duration", "h:mm:ss", f"{10**30 // 3600}:{10**30 // 60 % 60:02}:40"),
        (59.999, "duration", "h:mm:ss", "0:01:00"),
        (-3609, "duration", "h:mm:ss", "-1:00:09"),
        (450, "time", "", "07:30"),
        (450.25, "time", "", "07:30:15"),
        (1439.9999, "time", "", "23:59:59"),
        (-30, "time", "", "-30 min"),
        (1440, "time", "", "1440 min"),
        (MARCH_12, "date", "", "2026-03-12"),
        (True, "boolean", "", "yes"),
        (False, "boolean", "", "no"),
        ("some words", "text", "", "some words"),
    ],
)
def test_show(value: float | date | bool | str, kind: ColumnType, unit: str, text: str) -> None:
    assert show_value(value, kind, unit) == text


# Digits, signs and words that the readers look for, so that random texts get past their first character.
_PIECES = "0 5 12 30 60 2026 1e9 , . ' : / - + ~ $ € % ° h min m s km kg k pm am day March Thu about and yes ✓ ½ ² ٥ １ \ud800 \u00a0"
_TEXTS = (
    st.text()
    | st.lists(st.sampled_from([*_PIECES.split(" "), " "]), max_size=12).map("".join)
    | st.text(alphabet="0123456789:.,/ -hmk", max_size=90)
)


@given(_TEXTS)
@example("1:0:" + "0" * 70)
@example("0 " * 39 + "h")
@example("9." * 40)
@example("1,000" * 15 + "x")
def test_any_text_is_read_or_none_and_what_is_read_is_sound(text: str) -> None:
    for kind in COLUMN_TYPES:
        reading = read_value(text, kind)
        if reading is None:
            continue
        assert reading.type == kind
        if kind in {"number", "duration", "time"}:
            assert isinstance(reading.value, float) and math.isfinite(reading.value)
        if kind == "time":
            assert 0 <= float(str(reading.value)) < 1440
        assert kind in {"number", "duration"} or not reading.unit
        assert in_unit(reading, reading.unit) == (reading if kind in {"number", "duration"} else None)
        show_value(reading.value, kind, reading.unit)


@given(st.lists(_TEXTS, max_size=8))
def test_columns_of_any_texts(texts: list[str]) -> None:
    assert guess_type(texts) in COLUMN_TYPES
    for kind in COLUMN_TYPES:
        column = type_column(texts, kind)
        assert len(column.cells) == len(texts)
        assert [cell for text, cell in zip(texts, column.cells, strict=True) if not text.strip()] == [None] * sum(
            not t.strip() for t in texts
        )


@given(
    st.floats(-1e9, 1e9).map(lambda value: round(value, 2)),
    st.sampled_from(["", "bpm", "km/h", "%", "degrees", "USD", "°C", "heart points"]),
)
def test_printed_numbers_read_back(value: float, unit: str) -> None:
    assert read_value(format_number(value, unit), "number") == TypedValue("number", value + 0.0, unit)


@given(st.integers(0, 10**7), st.sampled_from(["s", "min", "h", "days", "h:mm:ss"]))
def test_printed_durations_read_back(seconds: int, unit: str) -> None:
    size = {"s": 1, "min": 60, "h": 3600, "days": 86400, "h:mm:ss": 1}[unit]
    reading = read_value(show_value(float(seconds), "duration", unit), "duration")
    assert reading is not None and reading.unit == unit and isinstance(reading.value, float)
    assert abs(reading.value - seconds) <= 0.005 * size + 1e-6 if unit != "h:mm:ss" else reading.value == seconds


@given(st.integers(0, 86399))
def test_printed_times_read_back(second: int) -> None:
    reading = read_value(show_value(second / 60, "time"), "time")
    assert reading is not None and reading.value == pytest.approx(second / 60)


@given(
    st.dates(min_value=date(1000, 1, 1)),
    st.sampled_from(["{0}", "{1}.{2}.{0:%Y}", "{0:%d %b} {0:%Y}", "{0:%B %d}, {0:%Y}", "{0:%Y}/{2}/{1}"]),
)
def test_written_dates_read_back(day: date, form: str) -> None:
    assert read_value(form.format(day, day.day, day.month), "date") == TypedValue("date", day)


@given(st.lists(st.dates(), min_size=1, max_size=20), st.booleans())
def test_a_column_of_dates_is_read_in_its_own_order(days: list[date], day_first: bool) -> None:
    days = [*days, days[0].replace(day=1) + timedelta(days=12)]  # the 13th
    texts = [f"{day.day}/{day.month}/{day.year:04}" if day_first else f"{day.month}/{day.day}/{day.year:04}" for day in days]
    assert type_column(texts, "date").cells == tuple(days)


@given(
    st.lists(st.sampled_from(["5 km", "500 m", "3", "1 mi", "2 kg", "x", "61 bpm", "1 h", "30 min"]), max_size=10),
    st.sampled_from(["number", "duration"]),
)
def test_a_printed_column_reads_as_itself(texts: list[str], kind: ColumnType) -> None:
    column = type_column(texts, kind)
    printed = ["" if cell is None else show_value(cell, kind, column.unit) for cell in column.cells]
    again = type_column(printed, kind)
    assert again.unit == column.unit
    for before, after in zip(column.cells, again.cells, strict=True):
        assert (before is None) == (after is None)
    assert type_column(["" if cell is None else show_value(cell, kind, again.unit) for cell in again.cells], kind) == again
