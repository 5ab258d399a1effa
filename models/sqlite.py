"""SQLite files that several processes and threads read and write at once."""

import os
import sqlite3
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from filelock import FileLock
from sqlalchemy import Engine, MetaData, QueuePool, create_engine, event
from sqlalchemy.schema import CreateIndex, CreateTable

BUSY_SECONDS = 60
"""How long a writer waits for the others before it gives up."""


def open_sqlite(path: Path, *, tables: MetaData, isolation_level: Literal["AUTOCOMMIT", "SERIALIZABLE"]) -> Engine:
    """Open a file in WAL mode, and make it, its folders and ``tables`` where they are missing.

    Args:
        path: The file.
        tables: What it holds.
        isolation_level: AUTOCOMMIT makes every statement a transaction of its own.

    Raises:
        sqlalchemy.exc.DatabaseError: the file is damaged, not SQLite, or cannot be written.
        OSError: its folder cannot be made or written.
    """
    path = path.absolute()  # SQLite reads a relative `file:…` as a URI, its `?…` as options, and `:memory:` as no file at all
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False),
        poolclass=QueuePool,
        isolation_level=isolation_level,
    )

    @event.listens_for(engine, "connect")
    def set_synchronous(connection, _record) -> None:  # type: ignore[no-untyped-def]  # DBAPI objects have no types
        # NORMAL survives a killed process; after a power cut the last answers may be missing, the file is whole.
        connection.execute("PRAGMA synchronous=NORMAL")

    # A file changes to WAL mode under a lock that SQLite does not wait for, so that only one process may do it.
    with FileLock(f"{path}.lock"), engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        for table in tables.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
        connection.commit()
    return engine


def open_sqlite_read_only(path: Path) -> Engine:
    """Open an existing file for reading; nothing is written beside it where its folder cannot be written.

    Raises:
        sqlalchemy.exc.DatabaseError: at the first query: the file is damaged, not SQLite, or does not exist.
    """
    path = path.absolute()
    # WAL needs a file of its own beside the database; on a folder that nobody can write, nobody changes the file either.
    options = "mode=ro" if os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"
    address = f"file:{quote(str(path))}?{options}"
    return create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, check_same_thread=False),
        poolclass=QueuePool,
        isolation_level="AUTOCOMMIT",
    )
