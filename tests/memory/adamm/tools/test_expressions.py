"""Column expressions over the log: values, types, units, and what is refused."""

from datetime import date
from typing import Any

import pytest

from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory
from memory.adamm.tools.columns import Columns
from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.expressions import Compiled, compile_expression

WHERE = "target_column_expression"


def compiled(log: AdaMMMemory, text: str) -> Compiled:
    return compile_expression(text, Columns(log.tables[0]), WHERE)


def values(log: AdaMMMemory, text: str) -> list[Any]:
    """Of the five rows; None where there is none."""
    one = compiled(log, text)
    store = TableStore(log.folder / DATABASE, timeout_seconds=10)
    sql = f"SELECT CASE WHEN {one.exists} THEN {one.sql} END FROM induced.training_log ORDER BY round_order"
    return [value for (value,) in store.query(sql, one.parameters * 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("heart_rate", [61, 72, None, 58.5, 72]),
        ("Heart_Rate", [61, 72, None, 58.5, 72]),  # case does not matter
        ("round_order", [0, 2, 4, 6, 8]),
        ("source", ["S0:R0", "S1:R0", "S2:R0", "S3:R0", "S4:R0"]),
        ("done", [True, False, None, True, True]),
        ("due", [date(2026, 3, 12), date(2026, 3, 15), None, date(2025, 12, 31), date(2026, 3, 15)]),
        ('odd "name" (x)', [1, 2, 3, None, 5]),  # the whole text is a name
        ('"odd ""name"" (x)" + 1', [2, 3, 4, None, 6]),
        ("heart_rate - 60 - 1", [0, 11, None, -2.5, 11]),
        ("heart_rate − 2 × 30", [1, 12, None, -1.5, 12]),
        ("2 + 3 * 4 ÷ (1 + 1)", [8] * 5),
        ("-heart_rate + --1", [-60, -71, None, -57.5, -71]),
        ("round_order * 1e9 * 1e9", [0, 2e18, 4e18, 6e18, 8e18]),
        ("*".join(["round_order"] * 12), [0, 2**12, 4**12, 6**12, 8**12]),  # more than an INTEGER holds
        ("climb / distance", [120 / 5500, None, None, None, 305 / 21100]),  # by zero, and without a value
        ("1 / (0 / climb)", [None] * 5),
        ("1 / (climb / 0)", [None] * 5),  # no number divided by what is no number
        ("1 / (1 / (1 / distance))", [1 / 5.5, None, 1 / 12, None, 1 / 21.1]),
        ("1 / (1e9 / (0 * distance)) + 1", [None] * 5),
        ("*".join(["1e14 * distance"] * 25), [None, 0, None, None, None]),  # beyond the range of numbers
        ("distance + 500 m", [6, 0.5, 12.5, None, 21.6]),
        ("distance - climb", [5.38, 0, None, None, 20.795]),
        ("distance + 1", [6.5, 1, 13, None, 22.1]),
        ("1 + distance", [6.5, 1, 13, None, 22.1]),
        ("sleep - 30", [-81000, -88200, None, -79200, -82800]),  # hours, as sleep is shown
        ("sleep + 30min", [28800, 21600, None, 30600, 27000]),
        ("0.5 h + sleep", [8, 6, None, 8.5, 7.5]),
        ("sleep / 2", [13500, 9900, None, 14400, 12600]),
        ("sleep / 0.5 hours", [15, 11, None, 16, 14]),
        ("distance / sleep", [5.5 / 7.5, 0, None, None, 21.1 / 7]),
        ("sleep / (bedtime - bedtime + 30)", [15, 11, None, None, 14]),
        ("bedtime - bedtime", [0, 0, 0, None, 0]),
        ("due - time", [2, 5, None, None, -17]),
        ("year(due) * 100 + month(due)", [202603, 202603, None, 202512, 202603]),
        ("DAY(time) + weekday(time)", [12, 12, 14, None, 4]),
    ],
)
def test_values(log: AdaMMMemory, text: str, expected: list[Any]) -> None:
    assert [*map(rounded, values(log, text))] == [*map(rounded, expected)]


def rounded(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("text", "kind", "unit"),
    [
        ("heart_rate", "number", "bpm"),
        ("sleep", "duration", "h"),
        ("round_order", "number", ""),
        ("time", "date", ""),
        ("heart_rate * 2", "number", "bpm"),
        ("2 * heart_rate", "number", "bpm"),
        ("1 + distance", "number", "km"),
        ("500 m + distance", "number", "m"),
        ("heart_rate * distance", "number", "bpm*km"),
        ("distance / heart_rate", "number", "km/bpm"),
        ("distance / (heart_rate * climb)", "number", "km/(bpm*m)"),
        ("1 / heart_rate", "number", "1/bpm"),
        ("climb / distance", "number", ""),
        ("sleep / sleep", "number", ""),
        ("distance / sleep", "number", "km/h"),
        ("distance * sleep", "number", "km*h"),
        ("sleep * 2", "duration", "h"),
        ("2 * sleep", "duration", "h"),
        ("-sleep", "duration", "h"),
        ("sleep + 1 h", "duration", "h"),
        ("1 h + sleep", "number", "h"),
        ("bedtime - bedtime", "duration", "min"),
        ("due - time", "number", "days"),
        ("month(due)", "number", ""),
    ],
)
def test_types_and_units(log: AdaMMMemory, text: str, kind: str, unit: str) -> None:
    one = compiled(log, text)
    assert (one.type, one.unit) == (kind, unit)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cannot be read"),
        ("*", "cannot be read"),
        ("heart_rate +", "cannot be read from '+' on"),
        ("heart_rate\n+ distance )", "cannot be read from ')' on"),
        ("heart_rate distance", "cannot be read from 'distance' on"),
        ("heart_rate; DROP TABLE x", "cannot be read from '; DROP TABLE x' on"),
        ("heart_rate -- x", "there is no column 'x'"),
        ("heart_rate /* x */", "cannot be read"),
        ("'text'", "cannot be read"),
        ("main.cells", "cannot be read from '.cells' on"),
        ('"induced"."x"', "cannot be read"),
        ("heart_rate__folded", "there is no column 'heart_rate__folded', perhaps heart_rate"),
        ("activity__folded", "there is no column 'activity__folded', perhaps activity"),  # a companion is no column of its own
        ("rowid", "there is no column 'rowid'"),
        ("read_text(activity)", "there is no function 'read_text'"),
        ("getenv(source)", "there is no function 'getenv'"),
        ("sum(heart_rate)", "there is no function 'sum'"),
        ("year(heart_rate)", "year(x) is of a date, not of a number in bpm"),
        ("heart_rate + distance", "number in bpm + number in km: the units do not convert"),
        ("heart_rate + 3 kg", "number in bpm + number in kg: the units do not convert"),
        ("due + due", "date + date is not defined"),
        ("due - 3", "date - number is not defined"),
        ("bedtime + bedtime", "time + time is not defined"),
        ("activity + 1", "text + number is not defined"),
        ("done * 2", "there is no arithmetic with a boolean"),
        ("-activity", "there is no arithmetic with a text"),
        ("due * activity", "there is no arithmetic with a date and a text"),
        ("heart_rate + 1e15", "'1e15' is no number below 10^15 with a unit"),
        (f"heart_rate + {'9' * 400}", "is no number below 10^15 with a unit"),
        ("heart_rate + 5 of", "'5 of' is no number below 10^15 with a unit"),
        ("-" * 200 + "heart_rate", "more than 50 operations inside each other"),
        ("(" * 240 + "heart_rate" + ")" * 240 + "* done", "there is no arithmetic with a boolean"),  # brackets are no operations
        ("+".join(["round_order"] * 60), "more than 50 operations inside each other"),
    ],
)
def test_refused(log: AdaMMMemory, text: str, problem: str) -> None:
    with pytest.raises(ToolError) as caught:
        compiled(log, text)
    assert caught.value.where == WHERE and problem in caught.value.problem
    assert caught.value.allowed


def test_the_error_lists_the_columns_with_types_and_units(log: AdaMMMemory) -> None:
    with pytest.raises(ToolError) as caught:
        compiled(log, "hart_rate * 2")
    assert caught.value.code == "column" and "perhaps heart_rate" in caught.value.problem
    assert caught.value.allowed.startswith("round_order (number), time (date), source (text), captions (text), heart_rate (number, bpm)")
