"""The affinity graph between episodes (HiVe-Mem, Eq. 2 and 3).

Each anchor a of an episode is textual, visual, or both. Eq. 2 matches a between episodes i and j unless it is
visual only in both of them, so with T the textual anchors, U all anchors and O = U - T the visual-only ones,

    w_ij = Σ_a IDF(a) · ([a ∈ T_i][a ∈ U_j] + [a ∈ O_i][a ∈ T_j]),

one sparse matrix product. Terms are added in the sorted order of the anchors, so weights are the same everywhere.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from memory.bank import AnchorSets

_ROWS_PER_BLOCK = 512
_EDGES_PER_BLOCK = 65_536


def inverse_document_frequencies(sets: Sequence[AnchorSets], *, idf: bool) -> dict[str, float]:
    """IDF of every anchor in sorted order: log((N + 1) / (1 + df)), or 1 with ``idf`` off (Eq. 3)."""
    frequency: dict[str, int] = {}
    for anchors in sets:
        for anchor in anchors.all:
            frequency[anchor] = frequency.get(anchor, 0) + 1
    n = len(sets)
    return {anchor: float(np.log((n + 1) / (1 + frequency[anchor]))) if idf else 1.0 for anchor in sorted(frequency)}


def affinity_graph(
    sets: Sequence[AnchorSets], *, weights: Mapping[str, float], k_edge: int, visual_visual: bool
) -> dict[tuple[int, int], float]:
    """The degree-capped affinity graph.

    Args:
        sets: anchors of the episodes, by index.
        weights: weight of each anchor, as from `inverse_document_frequencies`.
        k_edge: largest degree of a node.
        visual_visual: also match visual anchors with visual ones.

    Returns:
        (i, j) with i < j to w_ij > 0, in the order in which the greedy rule took them: by descending weight, then
        (i, j), while both ends have fewer than ``k_edge`` edges.
    """
    first, second, weight = _candidate_edges(sets, weights, visual_visual)
    order = np.lexsort((second, first, -weight))
    degree = np.zeros(len(sets), np.int64)
    edges: dict[tuple[int, int], float] = {}
    for start in range(0, len(order), _EDGES_PER_BLOCK):
        some = order[start : start + _EDGES_PER_BLOCK]
        some = some[(degree[first[some]] < k_edge) & (degree[second[some]] < k_edge)]
        for i, j, w in zip(first[some].tolist(), second[some].tolist(), weight[some].tolist(), strict=True):
            if degree[i] < k_edge and degree[j] < k_edge:
                edges[i, j] = w
                degree[i] += 1
                degree[j] += 1
    return edges


def _candidate_edges(
    sets: Sequence[AnchorSets], weights: Mapping[str, float], visual_visual: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """All pairs i < j with w_ij > 0: (E,) ends and (E,) weights."""
    left, right = _incidence(sets, weights, visual_visual)
    blocks = [(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float64))]
    for start in range(0, len(sets), _ROWS_PER_BLOCK):
        product = (left[start : start + _ROWS_PER_BLOCK] @ right).tocoo()
        rows = (product.row + start).astype(np.int32)
        upper = (rows < product.col) & (product.data > 0)
        blocks.append((rows[upper], product.col[upper].astype(np.int32), product.data[upper]))
    first, second, weight = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return first, second, weight


def _incidence(sets: Sequence[AnchorSets], weights: Mapping[str, float], visual_visual: bool) -> tuple[csr_array, csr_array]:
    """The two factors of the affinity matrix, (N, 2A) and (2A, N): columns 2a and 2a + 1 are anchor a's two terms."""
    place = {anchor: 2 * row for row, anchor in enumerate(sorted(weights))}
    left: list[tuple[int, int, float]] = []
    right: list[tuple[int, int, float]] = []
    for i, anchors in enumerate(sets):
        for anchor in sorted(anchors.all):
            column = place[anchor]
            textual = visual_visual or anchor in anchors.textual
            left.append((i, column if textual else column + 1, weights[anchor]))
            right.append((i, column, 1.0))
            if textual and not visual_visual:
                right.append((i, column + 1, 1.0))
    shape = (len(sets), 2 * len(place))
    return _sparse(left, shape), csr_array(_sparse(right, shape).T)


def _sparse(entries: Sequence[tuple[int, int, float]], shape: tuple[int, int]) -> csr_array:
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = csr_array((np.array(values, np.float64), (np.array(rows, np.int64), np.array(columns, np.int64))), shape=shape)
    matrix.sort_indices()
    return matrix
