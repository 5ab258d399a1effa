"""The call cache: every paid answer by the hash of its request, in SQLite or PostgreSQL.

One table, through SQLAlchemy Core. `CallCache.put` commits before it returns, so a reply that was stored survives a
killed process, and a key that exists keeps its reply: several processes may store the same call at once.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import (
    ARRAY,
    URL,
    Column,
    Engine,
    Float,
    Integer,
    MetaData,
    Row,
    Select,
    String,
    Table,
    Text,
    any_,
    bindparam,
    create_engine,
    func,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql.dml import ReturningInsert

from models.errors import CacheError
from models.requests import Reply, Usage
from models.sqlite import open_sqlite, open_sqlite_read_only

Mode = Literal["read_write", "read_only", "refresh"]
"""read_write: hits are used, misses are asked and stored. read_only: a miss is an error. refresh: ask again and replace."""

CALLS = Table(
    "calls",
    MetaData(),
    Column("key", String, primary_key=True),
    Column("model_id", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("image_tokens", Integer, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("first_token_seconds", Float(53)),
    Column("created", Float(53), nullable=False),
    Column("request", Text, nullable=False),  # last, because it is long and a look-up does not read it
)
_KEYS_PER_QUERY = 1000
_SECRETS = {"password", "passfile", "sslpassword", "sslkey"}


@dataclass(frozen=True)
class Call:
    """One row: a call that was made. ``request`` is `Request.rendered`; ``created`` is in seconds since 1970, UTC."""

    key: str
    model_id: str
    phase: str
    task: str
    reply: str
    input_tokens: int
    output_tokens: int
    image_tokens: int
    seconds: float
    first_token_seconds: float | None
    created: float
    request: str


def cache_url(where: str | Path) -> URL:
    """The database that a setting names: a path (SQLite), ``sqlite:///PATH`` or ``postgresql://USER@HOST:PORT/NAME``.

    Raises:
        CacheError: it is neither, or holds a password, which would end up in settings files and logs.
    """
    if isinstance(where, str) and not where.strip():
        raise CacheError("the call cache has no name; write a file's path or postgresql://USER@HOST:PORT/NAME")
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(where))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError) as error:
        raise CacheError("the call cache's URL cannot be read; write postgresql://USER@HOST:PORT/NAME or a file's path") from error
    if url.password or _SECRETS & url.query.keys():
        raise CacheError("the call cache's URL holds a password; leave it out and set PGPASSWORD, or write it to ~/.pgpass")
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database and not url.query:
        return url
    raise CacheError(f"the call cache cannot be {where}; write a file's path (SQLite) or postgresql://USER@HOST:PORT/NAME")


class CallCache:
    """The calls that one database holds. Safe to share between threads; every process opens its own."""

    def __init__(self, where: str | Path, *, mode: Mode) -> None:
        """Open a cache, and make it if the mode lets it be written.

        Raises:
            CacheError: it cannot be opened; the message says what to do.
        """
        self.url = cache_url(where)
        self.mode = mode
        with self.told():
            self.engine = self._open()
            self._check_columns()
        insert = (postgresql.insert if self.is_postgresql else sqlite.insert)(CALLS)
        replaced = {column.name: insert.excluded[column.name] for column in CALLS.columns if not column.primary_key}
        self._insert = insert.on_conflict_do_nothing().returning(CALLS.c.key)
        self._replace = insert.on_conflict_do_update(index_elements=["key"], set_=replaced).returning(CALLS.c.key)
        columns = CALLS.c
        keys = (
            columns.key == any_(bindparam("keys", type_=ARRAY(String)))
            if self.is_postgresql
            else columns.key.in_(select(func.json_each(bindparam("keys")).table_valued("value").c.value))
        )
        self._select = select(
            columns.key,
            columns.reply,
            columns.input_tokens,
            columns.output_tokens,
            columns.image_tokens,
            columns.seconds,
            columns.first_token_seconds,
        ).where(keys)

    @property
    def is_postgresql(self) -> bool:
        """Whether the database is PostgreSQL; else it is SQLite."""
        return self.url.get_backend_name() == "postgresql"

    @property
    def name(self) -> str:
        """The database as messages name it: a path, or a URL."""
        return str(self.url) if self.is_postgresql else str(self.url.database)

    def get(self, keys: Collection[str]) -> dict[str, Reply]:
        """The stored replies of those keys that have one, as hits.

        Raises:
            CacheError: the database cannot be read.
        """
        unique = list(dict.fromkeys(keys))
        found = {}
        for start in range(0, len(unique), _KEYS_PER_QUERY):
            some = unique[start : start + _KEYS_PER_QUERY]
            rows = self._execute(self._select, {"keys": some if self.is_postgresql else json.dumps(some)})
            for key, reply, n_input, n_output, n_image, seconds, first in rows:
                found[key] = Reply(key, reply, Usage(n_input, n_output, n_image), seconds, True, first)
        return found

    def put(self, calls: Sequence[Call], *, replace: bool) -> int:
        """Store and commit calls; returns how many were written. A key that exists keeps its call unless ``replace``.

        Raises:
            CacheError: the database cannot be written.
        """
        rows = [vars(call) for call in calls]
        return len(self._execute(self._replace if replace else self._insert, rows if len(rows) > 1 else rows[0])) if rows else 0

    def _execute(
        self, statement: Select[*tuple[Any, ...]] | ReturningInsert[*tuple[Any, ...]], parameters: Any
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Run one statement, which is a transaction of its own; once more where the server had dropped the connection."""
        with self.told():
            for _ in range(2):
                try:
                    with self.engine.connect() as connection:
                        return connection.execute(statement, parameters).all()
                except DBAPIError as error:
                    if not error.connection_invalidated:
                        raise
                    dropped = error
            raise dropped

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Turn a database's errors into a `CacheError` that says what to do."""
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            raise CacheError(f"the call cache {self.name} cannot be used ({_reason(error)}); {self._repair(error)}") from error

    def _repair(self, error: Exception) -> str:
        if self.is_postgresql:
            return "check that the server runs, that the database exists, and the user's password (PGPASSWORD or ~/.pgpass)"
        if isinstance(error, OperationalError | OSError):
            return "check that the file's folder exists and can be written, and that its disk has room"
        return f"the file is damaged or no cache: move it away to begin a new one; `sqlite3 {self.name} .recover` may save its answers"

    def _open(self) -> Engine:
        if not self.is_postgresql:
            path = Path(str(self.url.database))
            if self.mode != "read_only":
                return open_sqlite(path, tables=CALLS.metadata, isolation_level="AUTOCOMMIT")
            if not path.is_file():
                raise CacheError(f"the call cache {path} does not exist; name one that does, or begin one in the mode read_write")
            return open_sqlite_read_only(path)
        options = {"options": "-c default_transaction_read_only=on"} if self.mode == "read_only" else {}
        try:
            engine = create_engine(self.url, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 10, **options})
        except ModuleNotFoundError as error:
            raise CacheError("a PostgreSQL call cache needs psycopg; install it with pip install 'psycopg[binary]'") from error
        if self.mode != "read_only":
            with engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
                # Two processes that create one table at once collide in PostgreSQL's catalogue.
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('evidence gym calls'))"))
                connection.execute(CreateTable(CALLS, if_not_exists=True))
        return engine

    def _check_columns(self) -> None:
        inspector = inspect(self.engine)
        if not inspector.has_table(CALLS.name):
            raise CacheError(f"{self.name} holds no call cache (no table {CALLS.name}); name the database that does")
        have = {column["name"] for column in inspector.get_columns(CALLS.name)}
        differ = sorted(have ^ {column.name for column in CALLS.columns})
        if differ:
            raise CacheError(
                f"the call cache {self.name} was made by another version (columns that differ: {', '.join(differ)}); "
                "export it with that version, or name a new one"
            )


def _reason(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return " ".join(str(cause).split())
