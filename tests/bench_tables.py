"""Speeds of the analytic tools on a million rows, each beside the same queries typed by hand on the same connection."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from data.typed_values import ColumnType
from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory, Column, Table
from memory.adamm.tools.toolbox import ToolBox
from memory.duckdb_file import create

N_ROWS = 1_000_000
_TIMES = 15
# Type, unit and SQL of each column; `draw(k)` is an even draw from 0 to 1 by row and column. A tenth of the paces is missing.
_COLUMNS: dict[str, tuple[ColumnType, str, str]] = {
    "pace": ("number", "km/h", "CASE WHEN draw(0) < 0.1 THEN NULL ELSE round(draw(1) * 1000) / 10 END"),
    "weight": ("number", "kg", "draw(2) * 100"),
    "price": ("number", "EUR", "round(draw(3) * 1e7) / 100"),
    "due": ("date", "", "DATE '2020-01-01' + (draw(4) * 1500)::INTEGER"),
    "bedtime": ("time", "", "floor(draw(5) * 1440)"),
    "sleep": ("duration", "h", "floor(draw(6) * 40000)"),
    "done": ("boolean", "", "draw(7) < 0.3"),
    "activity": ("text", "", "'Activity ' || (draw(8) * 60)::INTEGER"),
    "note": ("text", "", "'Note ' || (draw(9) * 2000)::INTEGER || ' of the Day'"),
    "remark": ("text", "", "'Remark ' || md5(i::VARCHAR)"),
}
_BIG = 'FROM induced."big"'
_PLACE = "round_order, time, source"
_ALL = f"{_PLACE}, {', '.join(_COLUMNS)}"


def write_big(folder: Path, n_rows: int = N_ROWS) -> AdaMMMemory:
    """A memory whose one table has the columns above."""
    data = []
    for name, (kind, _, sql) in _COLUMNS.items():
        sql = sql.replace("draw(", "draw(i, ")
        data += [f"{sql} AS {name}"] + ([f"lower({sql}) AS {name}__folded"] if kind == "text" else [])
    with create(folder / DATABASE, n_rows=n_rows) as database:
        database.execute("CREATE SCHEMA induced; CREATE TEMP MACRO draw(i, k) AS hash(i, k) / 18446744073709551616.0")
        place = "i::INTEGER AS round_order, DATE '2015-01-01' + (i // 300)::INTEGER AS time, 'S' || i AS source, 'IMG_' || i AS captions"
        database.execute(f"CREATE TABLE induced.big AS SELECT {place}, {', '.join(data)} FROM range({n_rows}) AS r(i) ORDER BY i")
    columns = tuple(Column(name, name, kind, unit, "", (), 0) for name, (kind, unit, _) in _COLUMNS.items())
    table = Table("big", "What was logged.", columns, n_rows, 0)
    return AdaMMMemory("big", folder, "", "", (), (), (table,), np.zeros((1, 1), np.float32), {}, {}, (), {})


def table_speeds(folder: Path, n_rows: int = N_ROWS) -> list[list[str]]:
    """A row of the bench for each kind of call: median of the tool, of the queries by hand, their ratio, and the aim."""
    store = TableStore((memory := write_big(folder, n_rows)).folder / DATABASE, timeout_seconds=60)
    tools = ToolBox(memory, tables=store, retrieval=None)
    rows = []
    for name, aim, (tool, arguments), queries in _cases():
        ours, hand = _medians(partial(tools.call, tool, {"table": "big", **arguments}, allowance=10), partial(_run, store, queries))
        rows.append([name, f"{ours * 1e3:.1f} ms", f"by hand {hand * 1e3:.1f} ms", f"{ours / hand:.2f} ×", f"≤ {aim} ms, ≤ 1.5 ×"])
    store.close()
    return rows


Case = tuple[str, int, tuple[str, dict[str, Any]], list[str]]


def _cases() -> list[Case]:
    return [
        _lookup("time", "2018-03-01", "time = DATE '2018-03-01'"),
        _lookup("source", "s500000", "lower(nfc_normalize(source)) = 's500000'", aim=300),
        _filter("numbers", "pace", ">", 90, "pace > 90"),
        _filter("a number in another unit", "sleep", "<", "30 min", "sleep < 1800"),
        _filter("dates", "due", ">=", "2023-06-01", "due >= DATE '2023-06-01'"),
        _filter("booleans", "done", "=", True, "done = true"),
        _filter("text equality", "activity", "=", "activity 7", "activity__folded = 'activity 7'"),
        _filter("text contains, 60 values", "activity", "contains", "TY 7", "contains(activity__folded, 'ty 7')"),
        _filter("text contains, 2,000 values", "note", "contains", "TE 19", "contains(note__folded, 'te 19')"),
        _filter("text contains, every value another", "remark", "contains", "ABC1", "contains(remark__folded, 'abc1')", aim=300),
        *(_compute(operator, "pace", sql) for operator, sql in _AGGREGATES.items()),
        _compute("maximum", "due", "max(due)"),
        _compute("average", "price / weight", "favg(price / nullif(weight, 0))", value="price / nullif(weight, 0)"),
        _compute("count_distinct", "pace", "count(DISTINCT pace)"),
        _compute("count_distinct", "weight", "count(DISTINCT weight)", aim=300),
        _grouped("60 groups", "activity", 50),
        _grouped("2,000 groups", "note", 300),
        _rank("numbers", "weight"),
        _rank("dates", "due"),
        _rank("an expression", "weight * pace", aim=300),
    ]


_AGGREGATES = {
    "count": "count(pace)",
    "sum": "fsum(pace)",
    "average": "favg(pace)",
    "minimum": "min(pace)",
    "median": "median(pace)",
    "standard_deviation": "stddev_samp(pace)",
    "last": "arg_max(pace, round_order)",
    "difference": "arg_max(pace, round_order) - arg_min(pace, round_order)",
}


def _lookup(column: str, value: str, where: str, *, aim: int = 50) -> Case:
    queries = [f"SELECT {_ALL} {_BIG} WHERE {where} ORDER BY round_order LIMIT 10", f"SELECT count(*) {_BIG} WHERE {where}"]
    return f"Lookup: {column}", aim, ("Lookup", {"key_values": {column: value}}), queries


def _filter(name: str, column: str, operator: str, value: Any, where: str, *, aim: int = 50) -> Case:
    arguments = {"column_filters": [{"column": column, "operator": operator, "value": value}]}
    queries = [f"SELECT {_ALL} {_BIG} WHERE {where} ORDER BY round_order LIMIT 10", f"SELECT count(*) {_BIG} WHERE {where}"]
    return f"Filter: {name}", aim, ("Filter", arguments), queries


def _compute(operator: str, target: str, aggregate: str, *, value: str = "", aim: int = 50) -> Case:
    value = value or target
    arguments = {"target_column_expression": target, "operator": operator}
    queries = [
        f"SELECT {aggregate}, count({value}) {_BIG}",
        f"SELECT {_PLACE}, {value} {_BIG} WHERE {value} IS NOT NULL ORDER BY round_order LIMIT 10",
    ]
    return f"Compute: {operator} of {target}", aim, ("Compute", arguments), queries


def _grouped(name: str, group: str, aim: int) -> Case:
    arguments = {"target_column_expression": "weight", "operator": "average", "group_by": group}
    queries = [
        f"""SELECT arg_min({group}, round_order), favg(weight), count(*), count(*) OVER (), sum(count(*)) OVER () {_BIG}
        WHERE weight IS NOT NULL AND {group} IS NOT NULL GROUP BY {group}__folded
        ORDER BY count(*) DESC, min(round_order) LIMIT 50""",
        f"SELECT {_PLACE}, weight, {group} {_BIG} WHERE weight IS NOT NULL AND {group} IS NOT NULL ORDER BY round_order LIMIT 10",
    ]
    return f"Compute: by {name}", aim, ("Compute", arguments), queries


def _rank(name: str, target: str, *, aim: int = 50) -> Case:
    arguments = {"target_column_expression": target, "order": "descending"}
    queries = [
        f"SELECT {_ALL}, {target} {_BIG} WHERE {target} IS NOT NULL ORDER BY {target} DESC, round_order LIMIT 10",
        f"SELECT count(*) {_BIG} WHERE {target} IS NOT NULL",
    ]
    return f"Rank: {name}", aim, ("Rank", arguments), queries


def _run(store: TableStore, queries: list[str]) -> None:
    for sql in queries:
        store.query(sql, [])


def _medians(ours: Callable[[], Any], hand: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of both, taken in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(_TIMES):
        for one, found in zip((ours, hand), times, strict=True):
            start = time.perf_counter()
            one()
            found.append(time.perf_counter() - start)
    return median(times[0]), median(times[1])
