"""Tests of the similarity index."""

import numpy as np
import pytest
from numpy.typing import NDArray

from memory.index import VectorIndex


def _unit(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    vectors = rng.normal(size=(n, d))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def test_equals_a_full_sort() -> None:
    rng = np.random.default_rng(3)
    vectors = _unit(rng, 400, 24)
    index = VectorIndex(vectors, use_gpu=False)
    for query in _unit(rng, 20, 24):
        exact = vectors.astype(np.float64) @ query.astype(np.float64)
        found = index.search(query, 7)
        assert found.rows.tolist() == np.lexsort((np.arange(400), -exact))[:7].tolist()
        np.testing.assert_allclose(found.scores, exact[found.rows], rtol=1e-12)


def test_ties_go_to_the_lower_row_even_at_the_cut() -> None:
    rng = np.random.default_rng(1)
    vectors = _unit(rng, 60, 16)
    vectors[5:45] = vectors[5]  # forty equal vectors, of which three fit
    found = VectorIndex(vectors, use_gpu=False).search(vectors[5], 3)
    assert found.rows.tolist() == [5, 6, 7]
    assert found.scores[0] == found.scores[2]


def test_ties_do_not_depend_on_the_order_in_which_faiss_returns_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    vectors = _unit(rng, 60, 16)
    vectors[5:45] = vectors[5]
    index = VectorIndex(vectors, use_gpu=False)

    class LastFirst:
        """A search that keeps the last of equal vectors, as others than FAISS's CPU build may."""

        def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
            scores = vectors @ queries[0]
            rows = np.lexsort((-np.arange(60), -np.round(scores, 5)))[:k]
            return scores[rows][None], rows[None]

    monkeypatch.setattr(index, "_index", LastFirst())
    assert index.search(vectors[5], 3).rows.tolist() == [5, 6, 7]


def test_fewer_vectors_than_asked() -> None:
    vectors = _unit(np.random.default_rng(2), 3, 8)
    assert sorted(VectorIndex(vectors, use_gpu=False).search(vectors[1], 5).rows.tolist()) == [0, 1, 2]
    assert VectorIndex(vectors[:0], use_gpu=False).search(vectors[1], 5).rows.shape == (0,)
