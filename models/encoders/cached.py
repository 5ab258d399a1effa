"""Vectors on disk by content: a text or picture is embedded once per encoder, whoever asks."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from models.encoders.types import TextEncoder
from models.store import ContentStore


class CachedTextEncoder:
    """A `TextEncoder` that keeps vectors in memory and in a `ContentStore`."""

    def __init__(self, encoder: TextEncoder, *, store: ContentStore) -> None:
        self.id = encoder.id
        self.dimension = encoder.dimension
        self._encoder = encoder
        self._store = store
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (len(texts), d) float32, unit norm."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            keys = [hashlib.sha256(text.encode()).hexdigest() for text in new]
            vectors = vectors_by_key(
                self._store,
                f"text vectors of {self.id}",
                keys,
                self.dimension,
                lambda rows: self._encoder.encode([new[row] for row in rows]),
            )
            self._known.update(zip(new, vectors, strict=True))
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([self._known[text] for text in texts])


def vectors_by_key(
    store: ContentStore, namespace: str, keys: Sequence[str], dimension: int, compute: Callable[[Sequence[int]], NDArray[np.float32]]
) -> list[NDArray[np.float32]]:
    """Vectors of ``keys`` from the store; ``compute`` is called once with the row numbers of those it lacks.

    Returns one (d,) float32 array a key, in order.
    """
    stored = store.get(namespace, keys)
    found = {key: np.frombuffer(value, "<f4") for key, value in stored.items() if len(value) == 4 * dimension}  # a damaged one is a miss
    found = {key: vector for key, vector in found.items() if np.isfinite(vector).all()}
    missing = [row for row, key in enumerate(keys) if key not in found]
    if missing:
        computed = compute(missing).astype("<f4")
        fresh = {keys[row]: vector for row, vector in zip(missing, computed, strict=True)}
        store.put(namespace, {key: vector.tobytes() for key, vector in fresh.items()})
        found |= fresh
    return [found[key] for key in keys]
