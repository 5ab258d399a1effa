"""A door with its cache on disk, as a run opens it."""

from pathlib import Path

from models.cache.calls import CallCache
from models.door import Door
from models.requests import Backend


def open_door(backend: Backend, folder: Path) -> Door:
    return Door(backend, cache=CallCache(f"sqlite:///{folder / 'calls.sqlite'}", mode="read_write"), ledger=None)
