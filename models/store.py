"""Results that are expensive to compute, on disk by content: vectors and recognised text.

One SQLite file in WAL mode, through SQLAlchemy Core. Everything stored is a pure function of its key, so a lost
file costs time and never correctness. `put` commits before it returns: what was stored survives a killed process.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sqlalchemy import Column, LargeBinary, MetaData, PrimaryKeyConstraint, String, Table, bindparam, create_engine, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import SingletonThreadPool

from models.sqlite import open_sqlite

_ITEMS = Table(
    "items",
    MetaData(),
    Column("namespace", String, nullable=False),
    Column("key", String, nullable=False),
    Column("value", LargeBinary, nullable=False),
    PrimaryKeyConstraint("namespace", "key"),
    sqlite_with_rowid=False,
)
_SELECT = select(_ITEMS.c.key, _ITEMS.c.value).where(
    _ITEMS.c.namespace == bindparam("space"), _ITEMS.c.key.in_(bindparam("keys", expanding=True))
)
_KEYS_PER_QUERY = 500


class ContentStore:
    """Bytes by namespace and key in the SQLite file at ``path`` (created with its folders), or in memory for None."""

    def __init__(self, path: Path | None) -> None:
        if path is not None:
            self._engine = open_sqlite(path, tables=_ITEMS.metadata, isolation_level="SERIALIZABLE")
        else:
            self._engine = create_engine("sqlite://", poolclass=SingletonThreadPool)
            _ITEMS.metadata.create_all(self._engine)

    def get(self, namespace: str, keys: Iterable[str]) -> dict[str, bytes]:
        """The stored values of those keys that have one."""
        found: dict[str, bytes] = {}
        with self._engine.connect() as connection:
            for some in batched_keys(keys):
                found.update({key: value for key, value in connection.execute(_SELECT, {"space": namespace, "keys": some})})
        return found

    def put(self, namespace: str, values: Mapping[str, bytes]) -> None:
        """Store and commit; a key that exists keeps its value."""
        if values:
            rows = [{"namespace": namespace, "key": key, "value": value} for key, value in values.items()]
            with self._engine.begin() as connection:
                connection.execute(insert(_ITEMS).on_conflict_do_nothing(), rows)

    def close(self) -> None:
        """Close the file."""
        self._engine.dispose()


def batched_keys(keys: Iterable[str]) -> Iterable[Sequence[str]]:
    """Cut keys into lists that one query can take."""
    unique = list(dict.fromkeys(keys))
    return (unique[start : start + _KEYS_PER_QUERY] for start in range(0, len(unique), _KEYS_PER_QUERY))
