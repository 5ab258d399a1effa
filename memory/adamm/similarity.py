"""Vectors of nodes, and the similarity of nodes and queries: late fusion of two cosines (AdaMM, Eq. 12 and 13)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memory.adamm.model import NodeVectors
from memory.index import Nearest

# The product over all nodes adds in float32: nodes this close to the last place are scored again before the cut.
_MARGIN = 1e-4


@dataclass(frozen=True)
class FusionWeights:
    """Weights of the text and the visual cosine; where one of a pair has no visual vector, the text cosine stands alone."""

    text: float
    visual: float


PAPER_WEIGHTS = FusionWeights(text=0.60, visual=0.40)
"""Table 5."""


@dataclass(frozen=True)
class Probe:
    """What nodes are compared with: another node, or a query.

    ``text``: (d,) float32, unit norm. ``visual``: (v,) float32, unit norm, None where there is nothing visual.
    """

    text: NDArray[np.float32]
    visual: NDArray[np.float32] | None


def pool(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32] | None:
    """The normalised mean of vectors, each (v,) (Eq. 12); None where there are none or they cancel out."""
    total = np.sum(vectors, axis=0, dtype=np.float64)
    norm = float(np.sqrt(np.sum(total * total)))
    return np.asarray(total / norm, np.float32) if norm else None


def stack(nodes: Sequence[Probe], n_text: int, n_visual: int) -> NodeVectors:
    """The vectors of some nodes as read-only arrays of widths ``n_text`` and ``n_visual``."""
    text, visual = np.zeros((len(nodes), n_text), np.float32), np.zeros((len(nodes), n_visual), np.float32)
    has_visual = np.zeros(len(nodes), np.bool_)
    for row, node in enumerate(nodes):
        text[row] = node.text
        if node.visual is not None:
            visual[row], has_visual[row] = node.visual, True
    for array in (text, visual, has_visual):
        array.setflags(write=False)
    return NodeVectors(text, visual, has_visual)


@dataclass(frozen=True)
class MeanCosines:
    """Means of Eq. 13's two cosines, unweighted.

    ``text`` is over all nodes, ``visual`` over those that have a visual vector; None where there are none or the probe has none.
    """

    text: float
    visual: float | None


class FusedIndex:
    """The nodes of one level, searched by Eq. 13."""

    def __init__(self, vectors: NodeVectors, weights: FusionWeights) -> None:
        """Index n nodes; their arrays are not copied, but for the visual vectors where some nodes have none."""
        self._text = vectors.text
        self._all_visual = vectors.visual
        self._seen = np.flatnonzero(vectors.has_visual)
        self._text_weight = weights.text / (weights.text + weights.visual)
        self._visual_weight = weights.visual / (weights.text + weights.visual)

    def search(self, probe: Probe, k: int) -> Nearest:
        """The ``k`` nodes (all of them if there are fewer) most similar to the probe, with s(u, v) as scores.

        One float32 product proposes; the proposals are scored again in float64, each by the same sequence of operations, so
        that equal nodes have equal scores and ties go to the earlier node on every machine.
        """
        n = len(self._text)
        k = min(k, n)
        if k < 1:
            return Nearest(np.zeros(0, np.int64), np.zeros(0, np.float64))
        visual = probe.visual if len(self._seen) else None
        rough = self._text @ probe.text
        if visual is not None:
            rough[self._seen] = self._fused(rough[self._seen], self._visual @ visual)
        proposed = np.flatnonzero(rough >= np.partition(rough, n - k)[n - k] - _MARGIN)
        scores = _dots(self._text[proposed], probe.text)
        if visual is not None:
            _, places, rows = np.intersect1d(proposed, self._seen, assume_unique=True, return_indices=True)
            scores[places] = self._fused(scores[places], _dots(self._visual[rows], visual))
        best = np.lexsort((proposed, -scores))[:k]
        return Nearest(proposed[best], scores[best])

    def mean_cosines(self, probe: Probe) -> MeanCosines:
        """How large the two terms are for a probe over the whole level, which must have nodes: the product with the mean vector."""
        visual = None
        if probe.visual is not None and len(self._seen):
            visual = float(self._mean_visual @ probe.visual.astype(np.float64))
        return MeanCosines(float(self._mean_text @ probe.text.astype(np.float64)), visual)

    def _fused(self, text: NDArray[np.floating], visual: NDArray[np.floating]) -> NDArray[np.floating]:
        return self._text_weight * text + self._visual_weight * visual

    @cached_property
    def _visual(self) -> NDArray[np.float32]:
        """The visual vectors of the nodes in ``_seen``: few rounds have images, and a product over zeros costs as much."""
        return self._all_visual if len(self._seen) == len(self._all_visual) else self._all_visual[self._seen]

    @cached_property
    def _mean_text(self) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = self._text.mean(axis=0, dtype=np.float64)
        return mean

    @cached_property
    def _mean_visual(self) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = self._visual.mean(axis=0, dtype=np.float64)
        return mean


def _dots(rows: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    """(m,) float64 inner products of (m, d) rows with a vector."""
    products: NDArray[np.float64] = (rows.astype(np.float64) * vector.astype(np.float64)).sum(axis=1)
    return products
