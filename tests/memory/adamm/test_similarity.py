"""Tests of Eq. 13 against a direct reading of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory.adamm.model import NodeVectors
from memory.adamm.similarity import PAPER_WEIGHTS, FusedIndex, FusionWeights, Probe

COUNTS = st.tuples(*[st.integers(-2, 2)] * 3).filter(any)
NODES = st.lists(st.tuples(COUNTS, st.none() | COUNTS), max_size=12)


def _unit(row: tuple[int, ...]) -> NDArray[np.float32]:
    return (np.array(row, np.float64) / np.linalg.norm(row)).astype(np.float32)


def _vectors(nodes: list[tuple[tuple[int, ...], tuple[int, ...] | None]]) -> NodeVectors:
    visual = [np.zeros(3, np.float32) if row is None else _unit(row) for _, row in nodes]
    has_visual = np.array([row is not None for _, row in nodes], np.bool_)
    text = np.array([_unit(row) for row, _ in nodes], np.float32).reshape(-1, 3)
    return NodeVectors(text, np.array(visual, np.float32).reshape(-1, 3), has_visual)


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    total = 0.0
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        total += a * b
    return total


@given(NODES, COUNTS, st.none() | COUNTS, st.integers(0, 14), st.sampled_from([(0.6, 0.4), (1.0, 0.0), (0.25, 1.0)]))
def test_equals_a_direct_reading(
    nodes: list[tuple[tuple[int, ...], tuple[int, ...] | None]],
    text: tuple[int, ...],
    visual: tuple[int, ...] | None,
    k: int,
    weights: tuple[float, float],
) -> None:
    vectors, probe = _vectors(nodes), Probe(_unit(text), None if visual is None else _unit(visual))
    scored = []
    for row in range(len(nodes)):
        score = _cosine(vectors.text[row], probe.text)
        if probe.visual is not None and vectors.has_visual[row]:
            both = weights[0] + weights[1]
            score = weights[0] / both * score + weights[1] / both * _cosine(vectors.visual[row], probe.visual)
        scored.append((-score, row))
    found = FusedIndex(vectors, FusionWeights(*weights)).search(probe, k)
    assert [*zip((-found.scores).tolist(), found.rows.tolist(), strict=True)] == sorted(scored)[:k]


def test_weights_are_renormalised_over_what_both_have() -> None:
    vectors = _vectors([((3, 4, 0), (1, 0, 0)), ((3, 4, 0), None)])
    index = FusedIndex(vectors, PAPER_WEIGHTS)
    text = _unit((1, 0, 0))
    assert index.search(Probe(text, _unit((4, 3, 0))), 2).scores == pytest.approx([0.6 * 0.6 + 0.4 * 0.8, 0.6])
    assert index.search(Probe(text, None), 2).scores == pytest.approx([0.6, 0.6])


@pytest.mark.parametrize("share_with_image", [0.0, 0.2, 1.0])
def test_large_levels(share_with_image: float) -> None:
    rng = np.random.default_rng(3)
    text, visual = (_rows(rng, 5000, width) for width in (384, 768))
    has_visual = rng.random(5000) < share_with_image
    text[4000:] = text[:1000]  # equal nodes: the earlier one comes first
    visual[4000:], has_visual[4000:] = visual[:1000], has_visual[:1000]
    visual[~has_visual] = 0
    probe = Probe(text[17], visual[17] if has_visual[17] else _rows(rng, 1, 768)[0])
    exact = text.astype(np.float64) @ probe.text.astype(np.float64)
    seen = visual.astype(np.float64) @ probe.visual.astype(np.float64)
    exact = np.where(has_visual, 0.6 * exact + 0.4 * seen, exact)
    expected = np.lexsort((np.arange(5000), -exact.round(12)))
    for k in (1, 10, 4999):
        found = FusedIndex(NodeVectors(text, visual, has_visual), PAPER_WEIGHTS).search(probe, k)
        np.testing.assert_array_equal(found.rows, expected[:k])
        np.testing.assert_allclose(found.scores, exact[expected[:k]], atol=1e-12)


def test_many_equal_nodes() -> None:
    rng = np.random.default_rng(4)
    one = _rows(rng, 1, 384)
    vectors = NodeVectors(np.repeat(one, 777, axis=0), np.zeros((777, 0), np.float32), np.zeros(777, np.bool_))
    found = FusedIndex(vectors, PAPER_WEIGHTS).search(Probe(_rows(rng, 1, 384)[0], one[0]), 5)
    assert found.rows.tolist() == [0, 1, 2, 3, 4] and len(set(found.scores.tolist())) == 1


def test_mean_cosines_are_over_what_has_the_vector() -> None:
    vectors = _vectors([((1, 0, 0), (0, 0, 1)), ((3, 4, 0), None), ((0, 1, 0), (0, 1, 0))])
    index, text = FusedIndex(vectors, PAPER_WEIGHTS), _unit((1, 0, 0))
    means = index.mean_cosines(Probe(text, _unit((0, 4, 3))))
    assert (means.text, means.visual) == pytest.approx((1.6 / 3, 1.4 / 2))
    assert index.mean_cosines(Probe(text, None)).visual is None
    assert FusedIndex(_vectors([((1, 0, 0), None)]), PAPER_WEIGHTS).mean_cosines(Probe(text, text)).visual is None


def _rows(rng: np.random.Generator, n: int, width: int) -> NDArray[np.float32]:
    rows = rng.normal(size=(n, width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
