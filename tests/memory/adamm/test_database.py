"""Tests of the queries over a memory's database: limits, and what they cannot reach."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from memory.adamm import database
from memory.adamm.database import TableStore
from memory.adamm.tools.errors import ToolError
from memory.duckdb_file import create, write_table
from memory.errors import BankError

ENDLESS = "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b WHERE hash(a.range + b.range) = 1"


def written(path: Path, value: int = 1) -> Path:
    with create(path, n_rows=3) as file:
        write_table(file, "numbers", {"x": "INTEGER"}, [(value,), (value + 1,)])
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TableStore]:
    store = TableStore(written(tmp_path / "a.duckdb"), timeout_seconds=20)
    yield store
    store.close()


def test_values_are_bound(store: TableStore) -> None:
    assert store.query("SELECT x FROM numbers WHERE x > ? ORDER BY x", [1]) == [(2,)]
    assert store.query("SELECT ?", ["'; DROP TABLE numbers"]) == [("'; DROP TABLE numbers",)]


def test_a_slow_query_is_interrupted(tmp_path: Path) -> None:
    store = TableStore(written(tmp_path / "a.duckdb"), timeout_seconds=0.2)
    with pytest.raises(ToolError, match=r"query: took longer than 0.2 seconds and was stopped; allowed: .*filter") as caught:
        store.query(ENDLESS, [])
    assert caught.value.code == "timeout"
    assert store.query("SELECT count(*) FROM numbers", []) == [(2,)]
    at_once = TableStore(tmp_path / "a.duckdb", timeout_seconds=0)
    with pytest.raises(ToolError, match="0 seconds"):
        at_once.query(ENDLESS, [])
    store.close()


def test_no_thread_outlives_its_query(store: TableStore) -> None:
    n_threads = threading.active_count()
    for _ in range(5):
        store.query("SELECT 1", [])
    with pytest.raises(duckdb.Error):
        store.query("SELECT nonsense", [])
    assert threading.active_count() == n_threads


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_csv('{folder}/secret.csv')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM '{folder}/secret.csv'",
        "ATTACH '{folder}/b.duckdb'",
        "COPY numbers TO '{folder}/c.csv'",
        "EXPORT DATABASE '{folder}/c'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "PRAGMA threads = 8",
        "CREATE TABLE y (x INTEGER)",
        "INSERT INTO numbers VALUES (3)",
        "DELETE FROM numbers",
        "DROP TABLE numbers",
        "SELECT getenv('HOME')",
    ],
)
def test_nothing_is_written_and_nothing_outside_is_read(store: TableStore, tmp_path: Path, statement: str) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    written(tmp_path / "b.duckdb")
    there = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(duckdb.Error):
        store.query(statement.format(folder=tmp_path), [])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == there


def test_the_least_recently_used_file_is_closed(tmp_path: Path) -> None:
    stores = [TableStore(written(tmp_path / f"{n}.duckdb", n), timeout_seconds=20) for n in range(database._MAX_OPEN + 2)]
    stores[0].query("SELECT 1", [])
    kept, opened = database._open[tmp_path / "0.duckdb"], []
    for n, store in enumerate(stores):
        assert store.query("SELECT min(x) FROM numbers", []) == [(n,)]
        stores[0].query("SELECT 1", [])  # stays in use
        opened.append(len(database._open))
    assert max(opened) == database._MAX_OPEN
    assert database._open[tmp_path / "0.duckdb"] is kept and tmp_path / "1.duckdb" not in database._open
    assert stores[1].query("SELECT min(x) FROM numbers", []) == [(1,)]  # opened again
    for store in stores:
        store.close()
    assert not set(database._open) & {tmp_path / f"{n}.duckdb" for n in range(len(stores))}


def test_threads_share_stores_while_files_are_closed_and_opened(tmp_path: Path) -> None:
    stores = [TableStore(written(tmp_path / f"{n}.duckdb", n), timeout_seconds=60) for n in range(database._MAX_OPEN + 4)]

    def read(turn: int) -> bool:
        n = turn * 7 % len(stores)
        return stores[n].query("SELECT min(x), ? FROM numbers", [turn]) == [(n, turn)]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(read, range(40)))
    for store in stores:
        store.close()


def test_a_missing_or_foreign_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "noise.duckdb").write_bytes(b"noise" * 4000)
    for name in ("gone.duckdb", "noise.duckdb"):
        with pytest.raises(BankError, match=rf"{name}: damaged memory bank .*remove the bank's folder and build it again"):
            TableStore(tmp_path / name, timeout_seconds=1).query("SELECT 1", [])
    assert not (tmp_path / "gone.duckdb").exists()
