"""DuckDB files of a bank: written once in small blocks, then opened read-only and locked down."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

Row = tuple[Any, ...]
Columns = Mapping[str, str]
"""The columns of a table in order: name to DuckDB type."""

# With DuckDB's default block size a bank of 20 episodes takes megabytes; small blocks slow the reading of long text columns down.
_SMALL_BLOCK_BYTES, _DEFAULT_BLOCK_BYTES = 16_384, 262_144
_MANY_ROWS = 100_000
READ_ONLY: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",
    "temp_directory": "",
    "memory_limit": "512MB",
    "async_threads": "0",
    "threads": "1",
}


def open_read_only(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a file for reading, with nothing outside it in reach; raises `duckdb.Error`.

    All files are opened with one configuration, as DuckDB wants it of the files that one process has open.
    """
    return duckdb.connect(str(path), read_only=True, config=READ_ONLY)


def create(path: Path, *, n_rows: int) -> duckdb.DuckDBPyConnection:
    """Make a new file and open it for writing; ``n_rows`` are about those of its longest table."""
    block_bytes = _SMALL_BLOCK_BYTES if n_rows <= _MANY_ROWS else _DEFAULT_BLOCK_BYTES
    return duckdb.connect(str(path), config={"default_block_size": str(block_bytes)})


def write_table(database: duckdb.DuckDBPyConnection, table: str, columns: Columns, rows: Sequence[Row]) -> None:
    """Make a table and fill it, rows in order. ``table`` is quoted already, for it may name a schema; column names are not."""
    named = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    database.execute(f"CREATE TABLE {table} ({named})")
    values = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in columns]
    bound = ", ".join(f"unnest(?::{kind}[])" for kind in columns.values())
    database.execute(f"INSERT INTO {table} SELECT {bound}", values)


def quoted(name: str) -> str:
    """An identifier as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
