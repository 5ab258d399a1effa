"""Speeds of the door: warm look-ups by batch, and what a call costs beyond the backend's own time."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from models.cache.calls import CallCache
from models.door import Door
from models.ledger import Ledger
from models.requests import Reply, Request
from tests.models.calls import Echo, request

N_CHARACTERS = 3000
"""About what a question with its evidence has."""


def warm_lookups_per_second(folder: Path, *, n_requests: int = 20_000, batch: int = 500) -> float:
    """Answers a second when all are in the SQLite cache: rendering, hashing, look-up and ledger entry of each."""
    door = _door(folder)
    requests = [request(f"warm {number}", n_characters=N_CHARACTERS) for number in range(n_requests)]
    batches = [requests[start : start + batch] for start in range(0, n_requests, batch)]
    _seconds(door.generate, batches)
    return n_requests / min(_seconds(door.generate, batches) for _ in range(5))


def door_overhead_seconds(folder: Path, *, n_requests: int = 2_000, batch: int = 1) -> float:
    """Seconds a request that the door adds to a direct call when nothing is cached: look-up, commit and ledger entry.

    The median of five runs over new requests, each beside direct calls of the same backend.
    """
    door, backend = _door(folder), Echo()

    def direct(some: Sequence[Request]) -> list[Reply]:
        return [reply for _, reply in backend.stream(some)]

    added = []
    for run in range(5):
        requests = [request(f"cold {run} {number}", n_characters=N_CHARACTERS) for number in range(n_requests // 5)]
        batches = [requests[start : start + batch] for start in range(0, len(requests), batch)]
        added.append((_seconds(door.generate, batches) - _seconds(direct, batches)) / len(requests))
    return median(added)


def _door(folder: Path) -> Door:
    cache = CallCache(folder / "calls.sqlite", mode="read_write")
    return Door(Echo(), cache=cache, ledger=Ledger(folder / "ledger.jsonl", run="bench"))


def _seconds(generate: Callable[[Sequence[Request]], list[Reply]], batches: Sequence[Sequence[Request]]) -> float:
    start = time.perf_counter()
    for some in batches:
        generate(some)
    return time.perf_counter() - start
