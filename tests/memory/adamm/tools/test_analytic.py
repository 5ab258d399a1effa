"""Lookup, Filter, Compute and Rank over the log: keys of Table 4, budgets, results and texts."""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.result import ToolResult
from memory.adamm.tools.toolbox import ToolBox
from tests.memory.adamm.tools.logs import open_tools, write_tables


def call(tools: ToolBox, tool: str, *, table: str = "training_log", allowance: int = 10, **arguments: Any) -> ToolResult:
    return tools.call(tool, {"table": table, **arguments}, allowance=allowance)


def compute(tools: ToolBox, operator: str, target: str, **others: Any) -> Mapping[str, Any]:
    returned = call(tools, "Compute", target_column_expression=target, operator=operator, **others).returned
    result: Mapping[str, Any] = returned["computed_result"]
    return result


def test_lookup_returns_whole_records(tools: ToolBox) -> None:
    result = call(tools, "Lookup", key_values={"time": "2026-03-10", "activity": "morning run"})
    assert result.returned == {
        "matching_rows": [
            {
                **{"round_order": 0, "time": "2026-03-10", "source": "S0:R0", "heart_rate": 61.0, "distance": 5.5, "climb": 120.0},
                **{"sleep": 27000.0, "bedtime": 1380.0, "due": "2026-03-12", "done": True, "activity": "Morning Run"},
                'odd "name" (x)': 1.0,
            }
        ]
    }
    (unit,) = result.units
    assert unit.kind == "row" and unit.rounds == (0,)
    assert unit.text == (
        "Lookup training_log where time = 2026-03-10 and activity = morning run\n"
        "1 of 1: round_order: 0 | time: 2026-03-10 | source: S0:R0 | heart_rate: 61 bpm | distance: 5.5 km | climb: 120 m | sleep: 7.5 h"
        ' | bedtime: 23:00 | due: 2026-03-12 | done: yes | activity: Morning Run | odd "name" (x): 1'
    )


def test_keys_may_be_a_list(tools: ToolBox) -> None:
    pairs = call(tools, "Lookup", key_values=[{"column": "heart_rate", "value": 72}, {"column": "done", "value": True}])
    assert pairs.returned == call(tools, "Lookup", key_values={"heart_rate": "72 bpm", "done": "yes"}).returned
    assert [row["round_order"] for row in pairs.returned["matching_rows"]] == [8]


def test_filter_returns_the_first_rows_by_round_order(tools: ToolBox) -> None:
    filters = [{"column": "distance", "operator": ">=", "value": 0}, {"column": "captions", "operator": "contains", "value": "photo"}]
    result = call(tools, "Filter", column_filters=filters, result_budget=2, allowance=3)
    assert list(result.returned) == ["matching_rows"]
    assert [row["round_order"] for row in result.returned["matching_rows"]] == [0, 2]
    first, second = (unit.text for unit in result.units)
    assert first.startswith("Filter training_log where distance >= 0 and captions contains photo\n1 of 4: round_order: 0 | ")
    assert second.startswith("2 of 4: round_order: 2 | time: 2026-03-10 | source: S1:R0 | captions: IMG_2: Photo No 2 | heart_rate: 72 bpm")
    assert len(call(tools, "Filter", column_filters=filters, result_budget=10, allowance=3).units) == 3


def test_rank_leaves_out_what_has_no_value_and_breaks_ties_by_round_order(tools: ToolBox) -> None:
    down = call(tools, "Rank", target_column_expression="heart_rate", order="descending")
    assert list(down.returned) == ["ranked_rows"]
    assert [row["round_order"] for row in down.returned["ranked_rows"]] == [2, 8, 0, 6]
    assert down.units[1].text.startswith("2 of 4: round_order: 8 | ") and down.units[1].rounds == (8,)
    up = call(tools, "Rank", target_column_expression="heart_rate", order="ascending", allowance=1)
    assert [row["round_order"] for row in up.returned["ranked_rows"]] == [6]
    assert "\n1 of 4: " in up.units[0].text


def test_rank_shows_the_value_of_an_expression(tools: ToolBox) -> None:
    filters = [{"column": "done", "operator": "=", "value": True}]
    result = call(tools, "Rank", target_column_expression="climb / distance", order="ascending", optional_column_filters=filters)
    assert [row["climb / distance"] for row in result.returned["ranked_rows"]] == pytest.approx([305 / 21100, 120 / 5500])
    first = result.units[0].text
    assert first.startswith("Rank training_log: climb / distance ascending where done = true\n1 of 2: ")
    assert first.endswith(" | climb / distance: 0.01")
    days = call(tools, "Rank", target_column_expression="due", order="descending", result_budget=1)
    assert [row["due"] for row in days.returned["ranked_rows"]] == ["2026-03-15"]


@pytest.mark.parametrize("target", ["activity", "done", "source"])
def test_what_has_no_order_is_not_ranked(tools: ToolBox, target: str) -> None:
    with pytest.raises(ToolError, match="is not ranked; allowed: a number, date, time, duration"):
        call(tools, "Rank", target_column_expression=target, order="ascending")


@pytest.mark.parametrize(
    ("operator", "target", "value", "shown"),
    [
        ("count", "heart_rate", 4, "4"),
        ("count", "round_order", 5, "5"),
        ("count", "activity", 4, "4"),
        ("count_distinct", "heart_rate", 3, "3"),
        ("count_distinct", "done", 2, "2"),
        ("count_distinct", "due", 3, "3"),
        ("sum", "heart_rate", 263.5, "263.5 bpm"),
        ("average", "heart_rate", 65.875, "65.88 bpm"),
        ("median", "heart_rate", 66.5, "66.5 bpm"),
        ("minimum", "heart_rate", 58.5, "58.5 bpm"),
        ("maximum", "heart_rate", 72, "72 bpm"),
        ("standard_deviation", "heart_rate", 7.14580296397823, "7.15 bpm"),
        ("first", "heart_rate", 61, "61 bpm"),
        ("last", "climb", 305, "305 m"),
        ("difference", "heart_rate", 11, "11 bpm"),
        ("change", "heart_rate", [11, -13.5, 13.5], "11 bpm, -13.5 bpm, 13.5 bpm"),
        ("sum", "sleep", 100800, "28 h"),
        ("average", "sleep", 25200, "7 h"),
        ("change", "sleep", [-7200, 9000, -3600], "-2 h, 2.5 h, -1 h"),
        ("average", "bedtime", 1053.75, "17:33:45"),
        ("median", "bedtime", 1387.5, "23:07:30"),
        ("difference", "bedtime", 900, "15 min"),
        ("change", "bedtime", [-81000, 82800, -900], "-1350 min, 1380 min, -15 min"),
        ("minimum", "due", "2025-12-31", "2025-12-31"),
        ("maximum", "due", "2026-03-15", "2026-03-15"),
        ("first", "due", "2026-03-12", "2026-03-12"),
        ("difference", "due", 3, "3 days"),
        ("change", "due", [3, -74, 74], "3 days, -74 days, 74 days"),
        ("first", "done", True, "yes"),
        ("last", "activity", "bike_ride 100%", "bike_ride 100%"),
        ("sum", "distance + climb", 27.025, "27.02 km"),
        ("average", "climb / distance", 0.0181365790607497, "0.02"),
        ("difference", "year(due)", 0, "0"),
    ],
)
def test_computed_values(tools: ToolBox, operator: str, target: str, value: Any, shown: str) -> None:
    result = compute(tools, operator, target)
    assert result["value"] == value and type(result["value"]) in (type(value), float)
    assert result["shown"] == shown


def test_numbers_of_durations_are_seconds(tools: ToolBox) -> None:
    assert compute(tools, "average", "sleep")["unit"] == compute(tools, "difference", "bedtime")["unit"] == "s"
    assert compute(tools, "count", "sleep")["unit"] == ""


@pytest.mark.parametrize(
    ("operator", "target", "allowed"),
    [
        ("sum", "bedtime", "count, count_distinct, first, last, minimum, maximum, difference, change, average, median, standard_deviation"),
        ("average", "due", "count, count_distinct, first, last, minimum, maximum, difference, change"),
        ("maximum", "activity", "count, count_distinct, first, last"),
        ("sum", "done", "count, count_distinct, first, last"),
    ],
)
def test_operators_apply_to_types(tools: ToolBox, operator: str, target: str, allowed: str) -> None:
    with pytest.raises(ToolError) as caught:
        compute(tools, operator, target)
    assert (caught.value.code, caught.value.where, caught.value.allowed) == ("operator", "operator", allowed)


def test_a_result_and_its_rows_are_one_unit(tools: ToolBox) -> None:
    filters = [{"column": "sleep", "operator": ">", "value": "6 h"}]
    result = call(tools, "Compute", target_column_expression="heart_rate", operator="average", optional_column_filters=filters)
    assert result.returned == {
        "computed_result": {"value": 63.8333333333333, "unit": "bpm", "shown": "63.83 bpm", "n_contributing": 3},
        "contributing_rows": [
            {"round_order": 0, "time": "2026-03-10", "source": "S0:R0", "heart_rate": 61.0, "sleep": 27000.0},
            {"round_order": 6, "time": None, "source": "S3:R0", "heart_rate": 58.5, "sleep": 28800.0},
            {"round_order": 8, "time": "2026-04-01", "source": "S4:R0", "heart_rate": 72.0, "sleep": 25200.0},
        ],
    }
    (unit,) = result.units
    assert unit.kind == "computed" and unit.rounds == (0, 6, 8)
    assert unit.text.split("\n") == [
        "Compute training_log: average of heart_rate where sleep > 6 h",
        "result: 63.83 bpm",
        "n_contributing: 3",
        "round_order: 0 | time: 2026-03-10 | source: S0:R0 | heart_rate: 61 bpm | sleep: 7.5 h",
        "round_order: 6 | source: S3:R0 | heart_rate: 58.5 bpm | sleep: 8 h",
        "round_order: 8 | time: 2026-04-01 | source: S4:R0 | heart_rate: 72 bpm | sleep: 7 h",
    ]


def test_a_budget_of_one_does_not_cut_the_rows_of_a_result_but_its_own_budget_does(tools: ToolBox) -> None:
    arguments: Any = {"target_column_expression": "heart_rate", "operator": "sum"}
    assert len(call(tools, "Compute", allowance=1, **arguments).returned["contributing_rows"]) == 4
    two = call(tools, "Compute", result_budget=2, **arguments)
    assert two.returned["computed_result"]["value"] == 263.5
    assert [row["round_order"] for row in two.returned["contributing_rows"]] == [0, 2]
    assert "the first 2 of these rows by round order:" in two.units[0].text


def test_nothing_selected_is_no_error(tools: ToolBox) -> None:
    for operator in ("sum", "average", "minimum", "median", "standard_deviation", "first", "difference"):
        result = call(tools, "Compute", table="empty", target_column_expression="weight", operator=operator)
        nothing = {"value": None, "unit": "kg", "shown": "none", "n_contributing": 0}
        assert result.returned == {"computed_result": nothing, "contributing_rows": []}
    none = [{"column": "round_order", "operator": "<", "value": 0}]
    assert compute(tools, "count", "heart_rate", optional_column_filters=none)["value"] == 0
    assert compute(tools, "count_distinct", "activity", optional_column_filters=none)["value"] == 0
    assert compute(tools, "change", "heart_rate", optional_column_filters=none) == {
        **{"value": [], "unit": "bpm", "shown": "none", "n_contributing": 0}
    }
    grouped = compute(tools, "sum", "heart_rate", group_by="activity", optional_column_filters=none)
    assert grouped == {"groups": [], "unit": "bpm", "n_groups": 0, "n_contributing": 0}
    assert call(tools, "Filter", column_filters=none).units == ()
    one = [{"column": "round_order", "operator": "=", "value": 0}]
    assert compute(tools, "standard_deviation", "heart_rate", optional_column_filters=one)["value"] is None
    assert compute(tools, "difference", "heart_rate", optional_column_filters=one)["value"] == 0


def test_groups_come_in_order_of_their_values(tools: ToolBox) -> None:
    result = call(tools, "Compute", target_column_expression="heart_rate", operator="maximum", group_by="month(due)")
    assert result.returned["computed_result"] == {
        "groups": [
            {"group": 3.0, "value": 72.0, "shown": "72 bpm", "n_contributing": 3},
            {"group": 12.0, "value": 58.5, "shown": "58.5 bpm", "n_contributing": 1},
        ],
        **{"unit": "bpm", "n_groups": 2, "n_contributing": 4},
    }
    assert result.units[0].text.split("\n")[:6] == [
        "Compute training_log: maximum of heart_rate by month(due)",
        "result: 2 groups",
        "3: 72 bpm (n_contributing 3)",
        "12: 58.5 bpm (n_contributing 1)",
        "n_contributing: 4",
        "round_order: 0 | time: 2026-03-10 | source: S0:R0 | heart_rate: 61 bpm | due: 2026-03-12",
    ]
    with pytest.raises(ToolError, match="change is not computed by groups; allowed: count, "):
        compute(tools, "change", "heart_rate", group_by="month(due)")


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> ToolBox:
    """60 rows of as many weights, names that differ in case, and 57 places, of which the last occurs four times."""
    rows = [(70.0 + order / 10, ("Ann", "ANN", "bob")[order % 3], f"place {min(order, 56):02}", 1e300, order % 7.0) for order in range(60)]
    columns: Any = {
        "weight": ("number", "kg"),
        "who": ("text", ""),
        "where": ("text", ""),
        "huge": ("number", ""),
        "seventh": ("number", ""),
    }
    days = [date(2026, 1, 1 + order // 2).isoformat() for order in range(60)]
    return open_tools(write_tables(tmp_path_factory.mktemp("long"), {"log": (columns, rows)}, round_orders=range(60), dates=days))


def test_at_most_ten_rows_and_changes(long_log: ToolBox) -> None:
    result = call(long_log, "Compute", table="log", target_column_expression="weight", operator="change", allowance=3)
    computed = result.returned["computed_result"]
    assert computed["value"] == pytest.approx([0.1] * 10) and computed["n_contributing"] == 60
    assert [row["round_order"] for row in result.returned["contributing_rows"]] == list(range(10))
    assert "(the first 10 of 59)" in result.units[0].text and "the first 10 of these rows by round order:" in result.units[0].text
    everything = [{"column": "weight", "operator": ">", "value": 0}]
    assert len(call(long_log, "Filter", table="log", column_filters=everything, allowance=25).units) == 10


def test_many_ties_are_broken_by_round_order(long_log: ToolBox) -> None:
    for order, first, then in (("descending", 6, 5), ("ascending", 0, 1)):
        result = call(long_log, "Rank", table="log", target_column_expression="seventh", order=order)
        rounds = [row["round_order"] for row in result.returned["ranked_rows"]]
        assert rounds == [*range(first, 60, 7), *range(then, 60, 7)][:10]


def test_text_is_grouped_and_counted_without_case(long_log: ToolBox) -> None:
    groups = call(long_log, "Compute", table="log", target_column_expression="who", operator="count", group_by="who").returned
    assert [(one["group"], one["value"]) for one in groups["computed_result"]["groups"]] == [("Ann", 40), ("bob", 20)]
    distinct = call(long_log, "Compute", table="log", target_column_expression="who", operator="count_distinct").returned
    assert distinct["computed_result"]["value"] == 2


def test_of_more_than_fifty_groups_the_largest_are_shown(long_log: ToolBox) -> None:
    result = call(long_log, "Compute", table="log", target_column_expression="weight", operator="count", group_by="where")
    computed = result.returned["computed_result"]
    assert computed["n_groups"] == 57 and computed["n_contributing"] == 60
    assert [one["group"] for one in computed["groups"]] == [f"place {number:02}" for number in (*range(49), 56)]
    assert [one["value"] for one in computed["groups"]] == [1] * 49 + [4]
    assert "result: the 50 largest of 57 groups" in result.units[0].text


def test_results_beyond_the_range_of_numbers(long_log: ToolBox) -> None:
    squares = call(long_log, "Compute", table="log", target_column_expression="huge * huge", operator="sum")
    assert squares.returned["computed_result"]["value"] is None  # each counts as missing
    total = call(long_log, "Compute", table="log", target_column_expression="huge", operator="sum")
    assert total.returned["computed_result"]["value"] == pytest.approx(6e301)
    with pytest.raises(ToolError, match="the result is beyond the range of numbers"):
        call(long_log, "Compute", table="log", target_column_expression="huge * 1e8", operator="sum")


def test_texts_are_lines_and_results_plain_json(tmp_path: Path) -> None:
    rows = [("two\nlines | more", 1.0)]
    columns: Any = {"note\nx": ("text", ""), "n": ("number", "")}
    tools = open_tools(write_tables(tmp_path, {"t": (columns, rows)}, round_orders=[0], dates=["2026-01-01"]))
    result = call(tools, "Lookup", table="t", key_values={"note\nx": "TWO\nLINES | more"})
    assert result.units[0].text.count("\n") == 1
    assert json.loads(json.dumps(result.returned, allow_nan=False)) == result.returned
