"""Vectors on disk by content: a text or picture is embedded once per encoder, whoever asks."""

import hashlib
import json
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from data.images import Picture
from models.encoders.types import JointEncoder, TextEncoder, TextImageEncoder
from models.store import ContentStore


class CachedTextEncoder:
    """A `TextEncoder` that keeps vectors in memory and in a `ContentStore`."""

    def __init__(self, encoder: TextEncoder, *, store: ContentStore) -> None:
        self.id = encoder.id
        self.dimension = encoder.dimension
        self._encode_texts = encoder.encode
        self._store = store
        self._known: dict[tuple[str, str], NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode to (len(texts), d) float32, unit norm."""
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        return self._vectors("text", keys, lambda rows: self._encode_texts([texts[row] for row in rows]))

    def _vectors(self, kind: str, keys: Sequence[str], compute: Callable[[Sequence[int]], NDArray[np.float32]]) -> NDArray[np.float32]:
        """(len(keys), d) vectors; ``compute`` is called once with the numbers of the rows that neither memory nor store have."""
        new = {key: row for row, key in enumerate(keys) if (kind, key) not in self._known}
        if new:
            rows = [*new.values()]
            vectors = vectors_by_key(
                self._store, f"{kind} vectors of {self.id}", [*new], self.dimension, lambda some: compute([rows[number] for number in some])
            )
            self._known.update(zip([(kind, key) for key in new], vectors, strict=True))
        if not keys:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([self._known[kind, key] for key in keys])


class CachedTextImageEncoder(CachedTextEncoder):
    """A `TextImageEncoder` that keeps vectors in memory and in a `ContentStore`."""

    def __init__(self, encoder: TextImageEncoder, *, store: ContentStore) -> None:
        super().__init__(encoder, store=store)
        self._encode_pictures = encoder.encode_images

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Encode to (len(pictures), d) float32, unit norm."""
        keys = [content_key(picture) for picture in pictures]
        return self._vectors("image", keys, lambda rows: self._encode_pictures([pictures[row] for row in rows]))


class CachedJointEncoder(CachedTextImageEncoder):
    """A `JointEncoder` that keeps vectors in memory and in a `ContentStore`."""

    def __init__(self, encoder: JointEncoder, *, store: ContentStore) -> None:
        super().__init__(encoder, store=store)
        self._encode_items = encoder.encode_joint

    def encode_joint(self, items: Sequence[tuple[str, tuple[Picture, ...]]]) -> NDArray[np.float32]:
        """Encode texts, each with its pictures, to (len(items), d) float32, unit norm."""
        named = [json.dumps([text, [content_key(picture) for picture in pictures]]) for text, pictures in items]
        keys = [hashlib.sha256(name.encode()).hexdigest() for name in named]
        return self._vectors("joint", keys, lambda rows: self._encode_items([items[row] for row in rows]))


def content_key(picture: Picture) -> str:
    """Name a picture's pixels: its file's SHA-256 and the size sent."""
    return f"{picture.sha256}:{picture.width}x{picture.height}"


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
