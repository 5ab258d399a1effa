"""The database of AdaMM's memory: how it is written, read back and queried."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from memory.adamm.tools.errors import ToolError
from memory.duckdb_file import open_read_only
from memory.errors import damaged

DATABASE = "adamm.duckdb"
_MAX_OPEN = 16
_INTERRUPT_AGAIN = 0.05

_open: OrderedDict[Path, duckdb.DuckDBPyConnection] = OrderedDict()  # least recently used first
_lock = threading.Lock()


class TableStore:
    """Read-only queries over one memory's database, each under a time limit; threads may share a store.

    At most 16 files are open over the whole process: the least recently used is closed, and opened again when it is needed.
    """

    def __init__(self, path: Path, *, timeout_seconds: float) -> None:
        """``path``: the database file, opened at the first query; ``timeout_seconds``: what one query may take."""
        self._path = path
        self._timeout_seconds = timeout_seconds

    def query(self, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement with bound parameters and return all its rows.

        Raises:
            memory.adamm.tools.errors.ToolError: the query took longer than allowed; it was interrupted.
            memory.errors.BankError: there is no such file, or it is not a database.
            duckdb.Error: the statement or a value is wrong.
        """
        cursor = _cursor(self._path)
        done, too_late = threading.Event(), threading.Event()

        def watch() -> None:
            seconds = self._timeout_seconds
            while not done.wait(seconds):
                too_late.set()
                cursor.interrupt()
                seconds = _INTERRUPT_AGAIN  # an interrupt before the query has started is lost

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return cursor.execute(sql, list(parameters)).fetchall()
        except duckdb.InterruptException as error:
            if not too_late.is_set():
                raise
            problem = f"took longer than {self._timeout_seconds:g} seconds and was stopped"
            raise ToolError("timeout", "query", problem, "a narrower filter or a simpler expression") from error
        finally:
            done.set()
            watcher.join()
            cursor.close()

    def close(self) -> None:
        """Close the file; a later query opens it again."""
        with _lock:
            connection = _open.pop(self._path, None)
        if connection is not None:
            connection.close()


def _cursor(path: Path) -> duckdb.DuckDBPyConnection:
    """A cursor over the file: it stays usable when the file's own connection is closed for another's sake."""
    with _lock:
        if path not in _open:
            try:
                _open[path] = open_read_only(path)
            except duckdb.Error as error:
                raise damaged(path, str(error)) from error
        _open.move_to_end(path)
        while len(_open) > _MAX_OPEN:
            _open.popitem(last=False)[1].close()
        return _open[path].cursor()
