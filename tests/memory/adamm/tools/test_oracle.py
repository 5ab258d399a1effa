"""The tools against the same in plain Python, over generated tables of a few values, so that ties and gaps are common."""

import math
import operator as op
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.adamm.tools.toolbox import ToolBox
from tests.memory.adamm.tools.logs import open_tools, write_tables

Row = Mapping[str, Any]
N_TABLES = 40
COLUMNS: Any = {
    **{"n": ("number", "kg"), "m": ("number", "g"), "span": ("duration", "min"), "clock": ("time", ""), "day": ("date", "")},
    **{"flag": ("boolean", ""), "word": ("text", "")},
}
VALUES: dict[str, list[Any]] = {
    "n": [-2.0, 0.0, 0.1, 0.2, 0.3, 1.0, 1e9],
    "m": [0.0, 500.0, 1500.0, -250.0],
    "span": [0.0, 90.0, 3600.0, 5400.0],
    "clock": [0.0, 450.5, 1380.0],
    "day": [date(2025, 12, 31), date(2026, 1, 1), date(2026, 2, 14)],
    "flag": [True, False],
    "word": ["Ann", "ANN", "straße", "STRASSE", "a_b%", "Ann B"],
}


class Generated:
    """The tools over generated tables, and the rows of each table."""

    def __init__(self, tools: ToolBox, rows: list[list[Row]]) -> None:
        self.tools, self.rows = tools, rows


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """Tables of 0 to 39 rows, each row of any round, more or less filled."""
    rng = random.Random(0)
    orders = sorted(rng.sample(range(120), N_TABLES))
    dates = [(date(2026, 1, 1) + timedelta(order // 7)).isoformat() if order % 11 else "" for order in range(120)]
    tables: dict[str, Any] = {}
    rows: list[list[Row]] = []
    for number in range(N_TABLES):
        filled = rng.random()
        cells = [tuple(rng.choice(values) if rng.random() < filled else None for values in VALUES.values()) for _ in range(number)]
        tables[f"t{number}"] = (COLUMNS, cells)
        days = [date.fromisoformat(dates[order]) if dates[order] else None for order in orders]
        rows.append(
            [
                {"round_order": order, "time": day, **dict(zip(VALUES, row, strict=True))}
                for order, day, row in zip(orders, days, cells, strict=False)
            ]
        )
    memory = write_tables(tmp_path_factory.mktemp("generated"), tables, round_orders=orders, dates=dates)
    return Generated(open_tools(memory), rows)


def fold(text: str) -> str:
    return text.casefold()


def of(column: str) -> Callable[[Row], Any]:
    return lambda row: row[column]


def combined(function: Callable[..., Any], *columns: str) -> Callable[[Row], Any]:
    return lambda row: None if any(row[column] is None for column in columns) else function(*(row[column] for column in columns))


TARGETS: dict[str, tuple[str, Callable[[Row], Any]]] = {
    **{column: (kind, of(column)) for column, (kind, _) in COLUMNS.items()},
    "round_order": ("number", of("round_order")),
    "time": ("date", of("time")),
    "n * 2 - 1": ("number", combined(lambda n: n * 2 - 1, "n")),
    "n + m": ("number", combined(lambda n, m: n + m / 1000, "n", "m")),
    "n / m": ("number", combined(lambda n, m: None if m == 0 else n / (m / 1000), "n", "m")),
    "span / 2": ("duration", combined(lambda span: span / 2, "span")),
    "day - time": ("number", combined(lambda day, time: float((day - time).days), "day", "time")),
    "year(day) * 100 + month(day)": ("number", combined(lambda day: day.year * 100.0 + day.month, "day")),
}
COMPARISONS = {"=": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}
Condition = tuple[dict[str, Any], Callable[[Row], bool]]


def given_value(kind: str, value: Any) -> Any:
    """A value as a caller gives it."""
    return value.isoformat() if kind == "date" else f"{value} s" if kind == "duration" else value


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(["n", "m", "span", "day", "flag", "word", "n + m", "n / m", "span / 2"]))
    kind, value_of = TARGETS[column]
    values: list[Any] = VALUES.get(column, [0.5, 0.6, 2.0, 1800.0, -2.25])
    one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
    key: Callable[[Any], Any] = fold if kind == "text" else lambda value: value

    def condition(operator: str, value: Any, holds: Callable[[Any], bool]) -> Condition:
        asked = {"column": column, "operator": operator, "value": value}
        return asked, lambda row: value_of(row) is not None and holds(key(value_of(row)))

    known = ["=", "!=", "in", "is_null", "not null", *(["contains"] if kind == "text" else ["<", "<=", ">", ">=", "between"])]
    match draw(st.sampled_from(known[:5] if kind == "boolean" else known)):
        case "is_null":
            return {"column": column, "operator": "is_null"}, lambda row: value_of(row) is None
        case "not null":
            return condition("is_null", False, lambda _: True)
        case "in":
            return condition("in", [given_value(kind, v) for v in (one, other)], lambda value: value in (key(one), key(other)))
        case "between":
            return condition("between", [given_value(kind, v) for v in (one, other)], lambda value: one <= value <= other)
        case "contains":
            part = draw(st.sampled_from(["nn", "SS", "_", "%", "a", " "])).strip() or "b"
            return condition("contains", part, lambda value: fold(part) in value)
        case operator:
            return condition(operator, given_value(kind, one), lambda value: COMPARISONS[operator](value, key(one)))


Case = tuple[int, list[Condition]]
CASES = st.tuples(st.integers(0, N_TABLES - 1), st.lists(conditions(), max_size=3))
BUDGETS = st.one_of(st.none(), st.integers(1, 10))


def selected(rows: list[list[Row]], case: Case) -> list[Row]:
    return [row for row in rows[case[0]] if all(holds(row) for _, holds in case[1])]


def orders(rows: Sequence[Row]) -> list[int]:
    return [row["round_order"] for row in rows]


@settings(max_examples=150)
@given(case=CASES, budget=BUDGETS, allowance=st.integers(1, 12))
def test_filter(generated: Generated, case: Case, budget: int | None, allowance: int) -> None:
    tools, rows = generated.tools, generated.rows
    arguments = {
        "table": f"t{case[0]}",
        "column_filters": [asked for asked, _ in case[1]] or [{"column": "round_order", "operator": ">=", "value": 0}],
    }
    result = tools.call("Filter", arguments | {"result_budget": budget}, allowance=allowance)
    expected = selected(rows, case)
    shown = expected[: min(budget or 10, allowance, 10)]
    found = result.returned["matching_rows"]
    assert orders(found) == orders(shown)
    assert [{name: row[name] for name in VALUES} for row in found] == [
        {name: row[name].isoformat() if name == "day" and row[name] else row[name] for name in VALUES} for row in shown
    ]
    assert [unit.rounds for unit in result.units] == [(order,) for order in orders(shown)]
    assert all(f"{place} of {len(expected)}: " in unit.text for place, unit in enumerate(result.units, start=1))


@settings(max_examples=100)
@given(
    case=CASES,
    target=st.sampled_from([text for text, (kind, _) in TARGETS.items() if kind not in ("text", "boolean")]),
    descending=st.booleans(),
    budget=BUDGETS,
)
def test_rank(generated: Generated, case: Case, target: str, descending: bool, budget: int | None) -> None:
    tools, rows = generated.tools, generated.rows
    value_of = TARGETS[target][1]
    arguments = {
        **{"table": f"t{case[0]}", "target_column_expression": target, "order": "descending" if descending else "ascending"},
        **{"optional_column_filters": [asked for asked, _ in case[1]], "result_budget": budget},
    }
    found = tools.call("Rank", arguments, allowance=10).returned["ranked_rows"]
    eligible = [row for row in selected(rows, case) if value_of(row) is not None]
    expected = sorted(eligible, key=value_of, reverse=descending)  # stable, so ties stay in round order
    assert orders(found) == orders(expected[: budget or 10])


def expected_result(operator: str, kind: str, values: list[Any]) -> Any:
    """By the definitions, over the values in round order."""
    scale = 60 if kind == "time" and operator in ("standard_deviation", "difference", "change") else 1

    def minus(b: Any, a: Any) -> Any:
        return (b - a).days if kind == "date" else (b - a) * scale

    match operator:
        case "count":
            return len(values)
        case "count_distinct":
            return len({fold(value) if kind == "text" else value for value in values})
        case "change":
            return [minus(b, a) for a, b in pairwise(values)][:10]
    if not values or (operator == "standard_deviation" and len(values) < 2):
        return None
    match operator:
        case "sum":
            return math.fsum(values)
        case "average":
            return math.fsum(values) / len(values)
        case "minimum":
            return min(values)
        case "maximum":
            return max(values)
        case "median":
            return statistics.median(values)
        case "standard_deviation":
            return statistics.stdev(values) * scale
        case "first":
            return values[0]
        case "last":
            return values[-1]
    assert operator == "difference"
    return minus(values[-1], values[0])


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, date):
        return bool(found == expected.isoformat())
    if isinstance(expected, float | int) and not isinstance(expected, bool):
        return not isinstance(found, bool) and math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9 if abs(expected) < 1 else 0)
    return type(found) is type(expected) and bool(found == expected)


ANY = ["count", "count_distinct", "first", "last"]
ORDERED = [*ANY, "minimum", "maximum", "difference", "change"]
MEANS = [*ORDERED, "average", "median", "standard_deviation"]
OPERATORS = {"text": ANY, "boolean": ANY, "date": ORDERED, "time": MEANS, "number": [*MEANS, "sum"], "duration": [*MEANS, "sum"]}
COMPUTATIONS = st.sampled_from([(text, one) for text, (kind, _) in TARGETS.items() for one in OPERATORS[kind]])


@settings(max_examples=250)
@given(case=CASES, computation=COMPUTATIONS, budget=BUDGETS)
def test_compute(generated: Generated, case: Case, computation: tuple[str, str], budget: int | None) -> None:
    tools, rows = generated.tools, generated.rows
    target, operator = computation
    kind, value_of = TARGETS[target]
    arguments = {
        **{"table": f"t{case[0]}", "target_column_expression": target, "operator": operator, "result_budget": budget},
        "optional_column_filters": [asked for asked, _ in case[1]],
    }
    result = tools.call("Compute", arguments, allowance=1)
    contributing = [row for row in selected(rows, case) if value_of(row) is not None]
    computed = result.returned["computed_result"]
    assert same(computed["value"], expected_result(operator, kind, [value_of(row) for row in contributing]))
    assert computed["n_contributing"] == len(contributing)
    assert orders(result.returned["contributing_rows"]) == orders(contributing[: budget or 10])
    (unit,) = result.units
    assert unit.rounds == tuple(orders(contributing[: budget or 10]))
    assert f"\nn_contributing: {len(contributing)}" in unit.text


@settings(max_examples=150)
@given(
    case=CASES,
    computation=COMPUTATIONS.filter(lambda one: one[1] != "change"),
    group=st.sampled_from(["n", "day", "flag", "word", "n / m", "span"]),
)
def test_groups(generated: Generated, case: Case, computation: tuple[str, str], group: str) -> None:
    tools, rows = generated.tools, generated.rows
    target, operator = computation
    kind, value_of = TARGETS[target]
    group_kind, group_of = TARGETS[group]
    arguments = {
        **{"table": f"t{case[0]}", "target_column_expression": target, "operator": operator, "group_by": group},
        "optional_column_filters": [asked for asked, _ in case[1]],
    }
    result = tools.call("Compute", arguments, allowance=1).returned["computed_result"]
    expected: dict[Any, list[Any]] = {}
    names: dict[Any, Any] = {}
    for row in selected(rows, case):
        if value_of(row) is not None and group_of(row) is not None:
            key = fold(group_of(row)) if group_kind == "text" else group_of(row)
            expected.setdefault(key, []).append(value_of(row))
            names.setdefault(key, group_of(row))
    by_name = {names[key]: values for key, values in expected.items()}
    assert result["n_groups"] == len(by_name) and result["n_contributing"] == sum(map(len, by_name.values()))
    for found, name in zip(result["groups"], sorted(by_name), strict=True):
        assert same(found["group"], name)
        assert same(found["value"], expected_result(operator, kind, by_name[name]))
        assert found["n_contributing"] == len(by_name[name])
