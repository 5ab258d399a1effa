"""Conditions over the log: which rows they select, and what is refused. Rows are named by their place, 0 to 4."""

from typing import Any

import pytest

from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.toolbox import ToolBox


def select(tools: ToolBox, *conditions: tuple[Any, ...]) -> list[int]:
    filters = [dict(zip(("column", "operator", "value"), condition, strict=False)) for condition in conditions]
    result = tools.call("Filter", {"table": "training_log", "column_filters": filters}, allowance=10)
    return [row["round_order"] // 2 for row in result.returned["matching_rows"]]


@pytest.mark.parametrize(
    ("column", "operator", "value", "expected"),
    [
        ("heart_rate", "=", 72, [1, 4]),
        ("heart_rate", "!=", 72, [0, 3]),  # the missing one differs from nothing
        ("heart_rate", "≠", "72 bpm", [0, 3]),
        ("heart_rate", "≤", 61, [0, 3]),
        ("heart_rate", "≥", 61, [0, 1, 4]),
        ("heart_rate", "<", "61", [3]),
        ("heart_rate", ">", "61 BPM", [1, 4]),
        ("heart_rate", "between", [58.5, 61], [0, 3]),
        ("heart_rate", "between", [61, 58.5], []),
        ("heart_rate", "in", [61, "72 bpm"], [0, 1, 4]),
        ("heart_rate", "is_null", None, [2]),
        ("heart_rate", "is_null", True, [2]),
        ("heart_rate", "is_null", False, [0, 1, 3, 4]),
        ("distance", ">", "6000 m", [2, 4]),
        ("distance", ">", "10 miles", [4]),
        ("sleep", "=", "5 h 30 min", [1]),
        ("sleep", "=", 5.5, [1]),  # hours, as sleep is shown
        ("sleep", "<", "7.5 hrs", [1, 4]),
        ("sleep", "in", ["450 m", "7:00 h"], [0, 4]),  # m are minutes of a duration
        ("bedtime", ">=", "11:15 pm", [2, 4]),
        ("bedtime", "=", "00:30", [1]),
        ("due", "=", "2026-03-15", [1, 4]),
        ("due", "<", "12 March 2026", [3]),
        ("due", "between", ["2026-03-12", "03/15/2026"], [0, 1, 4]),
        ("time", "=", "2026-03-10", [0, 1]),
        ("time", "is_null", None, [3]),
        ("done", "=", True, [0, 3, 4]),
        ("done", "!=", "yes", [1]),
        ("done", "in", [False, True], [0, 1, 3, 4]),
        ("activity", "=", "run", [2]),
        ("activity", "!=", "run", [0, 1, 4]),
        ("activity", "in", ["RUN", "strasse walk"], [1, 2]),
        ("activity", "contains", "ＲＵＮ", [0, 2]),
        ("activity", "contains", "straße", [1]),
        ("activity", "contains", "%", [4]),
        ("activity", "contains", "e_r", [4]),
        ("activity", "contains", "_", [4]),
        ("activity", "contains", 100, [4]),
        ("activity", "is_null", None, [3]),
        ("round_order", "in", [2, 6], [1, 3]),
        ("source", "=", "s1:r0", [1]),
        ("source", "contains", "r0", [0, 1, 2, 3, 4]),
        ("captions", "contains", "PHOTO no 8", [4]),
        ('odd "name" (x)', ">", 2, [2, 4]),
        ("heart_rate - 10", ">", 60, [1, 4]),
        ("climb / distance", "<", 0.02, [4]),
        ("climb / distance", "is_null", None, [1, 2, 3]),  # divided by zero, or missing
        ("climb / distance", "is_null", False, [0, 4]),
        ("climb / distance", "!=", 5, [0, 4]),
        ("distance / sleep", ">", "0.5 mph", [4]),
        ("month(due)", "=", 12, [3]),
        ("due - time", ">=", "2 days", [0, 1]),
        ("due - time", ">", "0.5 weeks", [1]),
    ],
)
def test_selected_rows(tools: ToolBox, column: str, operator: str, value: Any, expected: list[int]) -> None:
    assert select(tools, (column, operator, value)) == expected


def test_all_conditions_must_hold(tools: ToolBox) -> None:
    assert select(tools, ("done", "=", True), ("distance", ">", 6), ("climb / distance", ">", 0)) == [4]


@pytest.mark.parametrize(
    ("column", "operator", "value", "code", "problem", "allowed"),
    [
        ("heart_rate", "contains", 7, "operator", "contains does not apply to a number", "=, !=, <, <=, >, >=, between, in, is_null"),
        ("activity", "<", "z", "operator", "< does not apply to a text", "=, !=, in, contains, is_null"),
        ("done", ">", False, "operator", "> does not apply to a boolean", "=, !=, in, is_null"),
        ("time", "contains", "2026-03", "operator", "contains does not apply to a date", "between"),
        ("heart_rate", "=", "fast", "value", "'fast' is not to be compared with a number in bpm", "in a unit that converts to bpm"),
        ("heart_rate", "=", "61 kg", "value", "'61 kg'", "in a unit that converts to bpm"),
        ("heart_rate", "=", True, "value", "True is not to be compared", "a number"),
        ("round_order", "=", "5 kg", "value", "'5 kg' is not to be compared with a number", "a number without a unit"),
        ("sleep", "=", "two naps", "value", "'two naps' is not to be compared with a duration in h", '"5 h 30 min"'),
        ("sleep", "=", "5 km", "value", "'5 km'", '"5 h 30 min"'),
        ("bedtime", "=", 23, "value", "23.0 is not to be compared with a time", '"7 pm"'),
        ("due", "=", "March", "value", "'March' is not to be compared with a date", "month(x)"),
        ("due", "=", 2026, "value", "2026.0", "month(x)"),
        ("done", "=", 1, "value", "1.0 is not to be compared with a boolean", "true or false"),
        ("activity", "=", True, "value", "True is not to be compared with a text", "a text"),
        ("activity", "contains", "  ", "value", "'  ' is not to be compared with a text", "a text"),
        ("heart_rate", "=", None, "value", "= wants one value", "is_null"),
        ("heart_rate", "=", [61], "value", "= wants one value", "in"),
        ("heart_rate", "in", 61, "value", "in wants a list", "at least one"),
        ("heart_rate", "in", [], "value", "in wants a list", "at least one"),
        ("heart_rate", "between", [1, 2, 3], "value", "between wants a list", "two values"),
        ("heart_rate", "is_null", "yes", "value", "is_null takes no value", "null, or false"),
    ],
)
def test_refused(tools: ToolBox, column: str, operator: str, value: Any, code: str, problem: str, allowed: str) -> None:
    with pytest.raises(ToolError) as caught:
        select(tools, (column, operator, value))
    assert caught.value.code == code
    assert caught.value.where.startswith("column_filters[0].")
    assert problem in caught.value.problem and allowed in caught.value.allowed


def test_one_error_names_all_problems(tools: ToolBox) -> None:
    with pytest.raises(ToolError) as caught:
        select(tools, ("pulse", ">", 60), ("heart_rate", ">", 60), ("due", "in", ["2026-03-12", "soon"]))
    assert caught.value.where == "column_filters[0].column"
    assert "'pulse'" in caught.value.problem
    assert "column_filters[2].value[1]: 'soon'" in caught.value.problem
