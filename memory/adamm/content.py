"""What the database of AdaMM's memory holds, how it is written, and how it is read back and checked."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from data.history import History
from data.typed_values import ColumnType
from memory.adamm.content_checks import database_problems, metadata_problems, null_problems
from memory.adamm.extraction import RoundContent
from memory.adamm.model import FOLDED, LEVELS, Column, Level, Node, Observation, SchemaEvent, Table
from memory.adamm.names import fold
from memory.adamm.tables import FilledTable
from memory.duckdb_file import Row, create, open_read_only, quoted, write_table
from memory.errors import damaged

DUCKDB_TYPES: Mapping[ColumnType, str] = {
    "number": "DOUBLE",
    "date": "DATE",
    "time": "DOUBLE",
    "duration": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
}
_AUXILIARY = {"round_order": "INTEGER", "time": "DATE", "source": "VARCHAR", "captions": "VARCHAR"}
_TABLES: dict[str, dict[str, str]] = {
    "rounds": {"round_order": "INTEGER", "round_id": "VARCHAR", "session_id": "VARCHAR"},
    "observations": {
        **{"round_order": "INTEGER", "position": "INTEGER", "attribute": "VARCHAR", "value": "VARCHAR"},
        **{"quote": "VARCHAR", "image_id": "VARCHAR"},
    },
    "tables": {"position": "INTEGER", "name": "VARCHAR", "description": "VARCHAR", "n_rows": "INTEGER", "schema": "INTEGER"},
    "columns": {
        **{"table_name": "VARCHAR", "position": "INTEGER", "name": "VARCHAR", "attribute": "VARCHAR", "type": "VARCHAR"},
        **{"unit": "VARCHAR", "description": "VARCHAR", "samples": "VARCHAR[]", "n_unusable": "INTEGER"},
    },
    "cells": {
        **{"table_name": "VARCHAR", "column_name": "VARCHAR", "round_order": "INTEGER", "position": "INTEGER"},
        **{"usable": "BOOLEAN", "filled": "BOOLEAN"},
    },
    "schema_events": {
        **{"position": "INTEGER", "round_order": "INTEGER", "kind": "VARCHAR", "schema": "INTEGER"},
        **{"attributes": "VARCHAR[]", "measure": "VARCHAR", "value": "DOUBLE"},
    },
    "nodes": {
        **{"level": "VARCHAR", "index": "INTEGER", "parent": "INTEGER", "children": "INTEGER[]", "text": "VARCHAR"},
        **{"rounds": "INTEGER[]", "first_date": "VARCHAR", "last_date": "VARCHAR", "image_ids": "VARCHAR[]"},
    },
    "counts": {"name": "VARCHAR", "value": "INTEGER"},
}


@dataclass(frozen=True)
class AdaMMContent:
    """All of a memory but its vectors, as it is written."""

    rounds: tuple[RoundContent, ...]
    observations: tuple[Observation, ...]
    tables: tuple[FilledTable, ...]
    schema_events: tuple[SchemaEvent, ...]
    nodes: Mapping[Level, tuple[Node, ...]]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class AdaMMMetadata:
    """What is read back at once: the rest stays in the database."""

    tables: tuple[Table, ...]
    schema_events: tuple[SchemaEvent, ...]
    nodes: Mapping[Level, tuple[Node, ...]]
    counts: Mapping[str, int]


def write_content(path: Path, content: AdaMMContent) -> None:
    """Write a new database file: the induced tables in the schema ``induced``, all else in ``main``."""
    with create(path, n_rows=len(content.rounds)) as database:
        for table, rows in _rows(content).items():
            write_table(database, table, _TABLES[table], rows)
        database.execute("CREATE SCHEMA induced")
        for filled in content.tables:
            write_table(database, f"induced.{quoted(filled.table.name)}", _columns(filled.table), _induced_rows(filled, content.rounds))


def _columns(table: Table) -> dict[str, str]:
    """The columns of an induced table: auxiliary ones, then data columns, each text column followed by its companion."""
    columns = dict(_AUXILIARY)
    for column in table.columns:
        columns[column.name] = DUCKDB_TYPES[column.type]
        if column.type == "text":
            columns[column.name + FOLDED] = "VARCHAR"
    return columns


def _induced_rows(filled: FilledTable, rounds: Sequence[RoundContent]) -> list[Row]:
    rows = []
    for order, values in zip(filled.round_orders, filled.values, strict=True):
        content = rounds[order]
        captions = "\n".join(f"{image_id}: {caption}" for image_id, caption in content.captions)
        row: list[Any] = [order, date.fromisoformat(content.date) if content.date else None, content.round.id, captions or None]
        for column, value in zip(filled.table.columns, values, strict=True):
            row.append(value)
            if column.type == "text":
                row.append(fold(value) if isinstance(value, str) else None)
        rows.append(tuple(row))
    return rows


def _rows(content: AdaMMContent) -> dict[str, list[Row]]:
    tables = [filled.table for filled in content.tables]
    return {
        "rounds": [(round_.order, round_.round.id, round_.session_id) for round_ in content.rounds],
        "observations": [(o.round_order, o.position, o.attribute, o.value, o.quote, o.image_id) for o in content.observations],
        "tables": [(position, t.name, t.description, t.n_rows, t.schema) for position, t in enumerate(tables)],
        "columns": [
            (t.name, position, c.name, c.attribute, c.type, c.unit, c.description, list(c.samples), c.n_unusable)
            for t in tables
            for position, c in enumerate(t.columns)
        ],
        "cells": [(c.table, c.column, c.round_order, c.position, c.usable, c.filled) for filled in content.tables for c in filled.cells],
        "schema_events": [
            (position, e.round_order, e.kind, e.schema, list(e.attributes), e.measure, e.value)
            for position, e in enumerate(content.schema_events)
        ],
        "nodes": [
            (n.level, n.index, n.parent, list(n.children), n.text, list(n.rounds), *n.dates, list(n.image_ids))
            for level in LEVELS
            for n in content.nodes[level]
        ],
        "counts": sorted(content.counts.items()),
    }


_READ = ("rounds", "tables", "columns", "schema_events", "nodes", "counts")


def read_metadata(path: Path, history: History) -> AdaMMMetadata:
    """Read the database file, read-only and locked down; what stays in it is checked as well.

    Raises:
        memory.errors.BankError: the file is not such a database, or refers to what is not there.
    """
    try:
        with open_read_only(path) as database:
            found = {table: _read(database, table) for table in _READ}
            problems = null_problems(found, _TABLES) or metadata_problems(found, history)
            if not problems:
                tables = _tables(found)
                problems = database_problems(database, {table: _columns(table) for table in tables}, history)
    except duckdb.Error as error:
        raise damaged(path, str(error)) from error
    if problems:
        raise damaged(path, "; ".join(problems))
    return AdaMMMetadata(
        tables=tables,
        schema_events=tuple(_schema_event(row) for row in found["schema_events"]),
        nodes={level: tuple(_node(row) for row in found["nodes"] if row[0] == level) for level in LEVELS},
        counts=dict(found["counts"]),
    )


def _read(database: duckdb.DuckDBPyConnection, table: str) -> list[Row]:
    """The rows of a table in the order of its first two columns; casting refuses what has another type."""
    columns = _TABLES[table]
    cast = ", ".join(f"CAST({quoted(name)} AS {kind})" for name, kind in columns.items())
    order = ", ".join(quoted(name) for name in [*columns][:2])
    return database.execute(f"SELECT {cast} FROM {table} ORDER BY {order}").fetchall()


def _tables(found: Mapping[str, Sequence[Row]]) -> tuple[Table, ...]:
    columns: defaultdict[str, list[Column]] = defaultdict(list)
    for table, _, name, attribute, kind, unit, description, samples, n_unusable in found["columns"]:
        columns[table].append(Column(name, attribute, kind, unit, description, tuple(samples), n_unusable))
    return tuple(Table(name, description, tuple(columns[name]), n_rows, schema) for _, name, description, n_rows, schema in found["tables"])


def _schema_event(row: Row) -> SchemaEvent:
    _, round_order, kind, schema, attributes, measure, value = row
    return SchemaEvent(round_order, kind, schema, tuple(attributes), measure, value)


def _node(row: Row) -> Node:
    level, index, parent, children, text, rounds, first, last, image_ids = row
    return Node(level, index, parent, tuple(children), text, tuple(rounds), (first, last), tuple(image_ids))
