"""The one door to every model: a call cache in front of a backend.

The key is a hash of the rendered request (`Request.key`), so a rebuilt bank, a second λ, a second seed and an
evaluation never pay twice for the same call, and an interrupted build resumes because its earlier calls are hits.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from models.requests import Backend, Reply, Request, Usage
from models.store import ContentStore


class Door:
    """Answers requests from the cache, and asks the backend for the rest; every new reply is stored before it is used."""

    def __init__(self, backend: Backend, *, store: ContentStore) -> None:
        self.backend = backend
        self.n_hits = 0
        self.n_calls = 0
        self._store = store
        self._namespace = f"replies of {backend.model_id}"

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer a batch, in order; equal requests in a batch share one call.

        Raises:
            models.errors.BackendError: the backend could not answer; replies stored before are kept.
        """
        keys = [request.key(self.backend.model_id) for request in requests]
        replies = {key: _read(key, value) for key, value in self._store.get(self._namespace, keys).items()}
        asked = {key: request for key, request in zip(keys, requests, strict=True) if key not in replies}
        if asked:
            fresh = dict(zip(asked, self.backend.generate(list(asked.values())), strict=True))
            self._store.put(self._namespace, {key: _write(reply) for key, reply in fresh.items()})
            replies |= fresh
        self.n_calls += len(asked)
        self.n_hits += len(requests) - len(asked)
        return [replies[key] for key in keys]


def _write(reply: Reply) -> bytes:
    row = asdict(reply)
    del row["key"], row["hit"]
    return json.dumps(row).encode()


def _read(key: str, value: bytes) -> Reply:
    row = json.loads(value)
    return replace(Reply(key=key, text=row["text"], usage=Usage(**row["usage"]), seconds=row["seconds"]), hit=True)
