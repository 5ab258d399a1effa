"""Checks of the database of AdaMM's memory: nothing in it may refer to what is not there, or be other than it was written."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, get_args

import duckdb

from data.history import History
from data.typed_values import COLUMN_TYPES
from memory.adamm.model import AUXILIARY_COLUMNS, LEVELS, EventKind, Table
from memory.adamm.names import fold
from memory.duckdb_file import Columns, Row, quoted

_MAY_BE_NULL = {("schema_events", "schema"), ("nodes", "parent")}


def null_problems(found: Mapping[str, Sequence[Row]], columns: Mapping[str, Columns]) -> list[str]:
    """Where something is missing that must be there."""
    return [
        f"{table}.{column} is NULL in a row"
        for table, rows in found.items()
        for place, column in enumerate(columns[table])
        if (table, column) not in _MAY_BE_NULL and any(_has_null(row[place]) for row in rows)
    ]


def _has_null(value: Any) -> bool:
    return value is None or (isinstance(value, list) and None in value)


def metadata_problems(found: Mapping[str, Sequence[Row]], history: History) -> list[str]:
    """What is wrong with the metadata; none of it is NULL where it must not be."""
    tables = [row[1] for row in found["tables"]]
    names = {table: [row[2] for row in found["columns"] if row[0] == table] for table in tables}
    n_rounds = sum(1 for _ in history.rounds)
    rounds = [(session.id, round_.id) for session in history.sessions for round_ in session.rounds]
    checks = {
        "the rounds are not the history's": [(session, round_id) for _, round_id, session in found["rounds"]] != rounds
        or [row[0] for row in found["rounds"]] != list(range(n_rounds)),
        "tables are not numbered 0 to n - 1": [row[0] for row in found["tables"]] != list(range(len(tables))),
        "names of tables are not unique": _repeated(tables),
        "names of columns are not unique": any(_repeated([*AUXILIARY_COLUMNS, *columns]) for columns in names.values()),
        "a column belongs to no table": any(row[0] not in names for row in found["columns"]),
        "a column has an unknown type": any(row[4] not in COLUMN_TYPES for row in found["columns"]),
        "a schema event is of no round or of an unknown kind": any(
            not 0 <= order < n_rounds or kind not in get_args(EventKind) for _, order, kind, *_ in found["schema_events"]
        ),
        "names of counts are not unique": len(dict(found["counts"])) != len(found["counts"]),
    }
    return [problem for problem, is_so in checks.items() if is_so] + _node_problems(found["nodes"], n_rounds, history)


def _repeated(names: Sequence[str]) -> bool:
    return len({fold(name) for name in names}) != len(names)


def _node_problems(rows: Sequence[Row], n_rounds: int, history: History) -> list[str]:
    """What is wrong with the hierarchy: numbering, links up and down, rounds, images."""
    levels = {level: [row for row in rows if row[0] == level] for level in LEVELS}
    numbered = all([row[1] for row in found] == list(range(len(found))) for found in levels.values())
    image_ids = {image.id for image in history.images}
    checks = {
        "a node is of an unknown level": sum(map(len, levels.values())) != len(rows),
        "nodes are not numbered 0 to n - 1": not numbered,
        "an event is not a round": [row[5] for row in levels["event"]] != [[order] for order in range(n_rounds)],
        "parents and children do not agree": numbered
        and not all(_linked(levels[below], levels[level]) for below, level in pairwise(LEVELS)),
        "a node covers an unknown round": any(not 0 <= order < n_rounds for row in rows for order in row[5]),
        "a node has an unknown image": any(image_id not in image_ids for row in rows for image_id in row[8]),
    }
    return [problem for problem, is_so in checks.items() if is_so]


def _linked(below: Sequence[Row], above: Sequence[Row]) -> bool:
    """Whether children exist and name their parent, or none; and whether parents name their children."""
    links = {(child, row[1]) for row in above for child in row[3]}
    named = {(row[1], row[2]) for row in below if row[2] is not None}
    return named <= links and all(0 <= child < len(below) and below[child][2] in (parent, None) for child, parent in links)


_OUTSIDE = {
    "an observation is of no round": "SELECT 1 FROM observations WHERE round_order NOT IN (SELECT round_order FROM rounds)",
    "an observation is there twice": "SELECT 1 FROM observations GROUP BY round_order, position HAVING count(*) > 1",
    "an observation has two pointers or none": "SELECT 1 FROM observations WHERE (quote = '') = (image_id = '')",
    "a cell belongs to no column": "SELECT 1 FROM cells WHERE (table_name, column_name) NOT IN (SELECT (table_name, name) FROM columns)",
    "a cell belongs to no observation": ("SELECT 1 FROM cells ANTI JOIN observations USING (round_order, position)"),
}


def database_problems(database: duckdb.DuckDBPyConnection, tables: Mapping[Table, Columns], history: History) -> list[str]:
    """What is wrong with what stays in the database; ``tables`` are the induced ones with their columns' types."""
    problems = [problem for problem, search in _OUTSIDE.items() if database.execute(f"{search} LIMIT 1").fetchall()]
    image_ids = {image.id for image in history.images} | {""}
    if any(image_id not in image_ids for (image_id,) in database.execute("SELECT DISTINCT image_id FROM observations").fetchall()):
        problems.append("an observation has an unknown image")
    there = {name for (name,) in database.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'induced'").fetchall()}
    if there != {table.name for table in tables}:
        return [*problems, f"the induced tables are {sorted(there)}"]
    return problems + [problem for table, columns in tables.items() for problem in _table_problems(database, table, columns)]


def _table_problems(database: duckdb.DuckDBPyConnection, table: Table, columns: Columns) -> list[str]:
    name = f"induced.{quoted(table.name)}"
    described = database.execute(f"DESCRIBE {name}").fetchall()
    if [row[:2] for row in described] != list(columns.items()):
        return [f"table {table.name} has other columns"]
    # Rounds that the table lists, in order and each once.
    counted = f"""SELECT count(*), count(DISTINCT t.round_order), count(rounds.round_id)
        FROM {name} AS t LEFT JOIN rounds ON t.round_order = rounds.round_order AND t.source = rounds.round_id"""
    if set(database.execute(counted).fetchall()) != {(table.n_rows,) * 3}:
        return [f"table {table.name} does not have {table.n_rows} rows of rounds of the history, each once"]
    return []
