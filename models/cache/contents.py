"""What a call cache holds: counts, sizes, single calls; and removing calls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import ColumnElement, delete, func, select, text

from models.cache.calls import CALLS, Call, CallCache

_ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Group:
    """The calls of one model and task. ``n_bytes`` counts the characters of requests and replies."""

    model_id: str
    task: str
    n_calls: int
    n_bytes: int
    input_tokens: int
    output_tokens: int
    image_tokens: int
    seconds: float
    newest: float


@dataclass(frozen=True)
class Filter:
    """Which calls: those that meet every condition given. ``before`` is in seconds since 1970, UTC."""

    model_id: str | None = None
    key: str | None = None
    before: float | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """As SQL, with bound values; ``key`` is the beginning of a key."""
        conditions: list[ColumnElement[bool]] = []
        if self.model_id is not None:
            conditions.append(CALLS.c.model_id == self.model_id)
        if self.key is not None:
            conditions.append(CALLS.c.key.startswith(self.key, autoescape=True))
        if self.before is not None:
            conditions.append(CALLS.c.created < self.before)
        return conditions


def groups(cache: CallCache) -> list[Group]:
    """Counts and sums by model and task, the largest first."""
    columns = CALLS.c
    sums = [func.sum(column) for column in (columns.input_tokens, columns.output_tokens, columns.image_tokens, columns.seconds)]
    n_bytes = func.sum(func.length(columns.request) + func.length(columns.reply))
    n_calls = func.count()
    query = (
        select(columns.model_id, columns.task, n_calls, n_bytes, *sums, func.max(columns.created))
        .group_by(columns.model_id, columns.task)
        .order_by(n_calls.desc(), columns.model_id, columns.task)
    )
    with cache.told(), cache.engine.connect() as connection:
        return [Group(*row) for row in connection.execute(query)]


def newest(cache: CallCache, n_calls: int, *, only: Filter) -> list[Call]:
    """The calls stored last, the newest first."""
    query = select(CALLS).where(*only.conditions).order_by(CALLS.c.created.desc(), CALLS.c.key).limit(n_calls)
    with cache.told(), cache.engine.connect() as connection:
        return [Call(**row) for row in connection.execute(query).mappings()]


def batches(cache: CallCache, *, only: Filter) -> Iterator[Sequence[Call]]:
    """All calls, by key, a few hundred at a time; between two batches nothing is held open that would stop a writer."""
    last = ""
    while True:
        query = select(CALLS).where(CALLS.c.key > last, *only.conditions).order_by(CALLS.c.key).limit(_ROWS_AT_ONCE)
        with cache.told(), cache.engine.connect() as connection:
            calls = [Call(**row) for row in connection.execute(query).mappings()]
        if not calls:
            return
        yield calls
        last = calls[-1].key


def count(cache: CallCache, *, only: Filter) -> int:
    """How many calls there are."""
    with cache.told(), cache.engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(CALLS).where(*only.conditions)).scalar_one()


def remove(cache: CallCache, *, only: Filter) -> int:
    """Remove calls and give their space back; returns how many."""
    with cache.told(), cache.engine.connect() as connection:
        n_removed = connection.execute(delete(CALLS).where(*only.conditions)).rowcount
        connection.execute(text(f"VACUUM {CALLS.name}" if cache.is_postgresql else "VACUUM"))
    return n_removed


def size_on_disk(cache: CallCache) -> int:
    """Bytes that the database takes, indexes and write-ahead log included."""
    if cache.is_postgresql:
        with cache.told(), cache.engine.connect() as connection:
            return int(connection.execute(text(f"SELECT pg_total_relation_size('{CALLS.name}')")).scalar_one())
    files = [Path(f"{cache.url.database}{ending}") for ending in ("", "-wal", "-shm")]
    return sum(file.stat().st_size for file in files if file.exists())
