"""`MemoryBank`: what was built from one history, as everything downstream sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data.images import Picture
from memory.index import VectorIndex, gpu_available


@dataclass(frozen=True)
class EpisodeImage:
    """One image of a memory episode: caption c (Eq. 1), picture o (None when the file is absent), grounded view g."""

    id: str
    caption: str
    picture: Picture | None
    view: Picture | None


@dataclass(frozen=True)
class AnchorSets:
    """The canonical anchors of one episode: textual T and visual V."""

    textual: frozenset[str]
    visual: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Textual and visual anchors together."""
        return self.textual | self.visual

    def matching(self, other: "AnchorSets", *, visual_visual: bool) -> frozenset[str]:
        """The matching anchor set A_ij of Eq. 2; with ``visual_visual`` also V_i ∩ V_j (ablation)."""
        if visual_visual:
            return self.all & other.all
        return (self.textual & other.all) | (self.visual & other.textual)


@dataclass(frozen=True)
class MemoryEpisode:
    """One memory episode m = (r, s, c, o, g, T, V) (HiVe-Mem, Eq. 1).

    ``index`` is its place in the history, from 0; anchors are canonical forms (`memory.hive.anchors`).
    """

    index: int
    session_id: str
    date: str
    round_ids: tuple[str, ...]
    raw: str
    summary: str
    images: tuple[EpisodeImage, ...]
    textual_anchors: frozenset[str]
    visual_anchors: frozenset[str]

    @property
    def anchor_sets(self) -> AnchorSets:
        """Both anchor sets, T and V."""
        return AnchorSets(self.textual_anchors, self.visual_anchors)


@dataclass(frozen=True)
class MemoryBank:
    """The memory of one history, fully loaded; every array is read-only.

    ``summary_vectors``: (N, d) float32, unit norm, row i for episode i.
    ``anchors``: canonical anchors in sorted order; ``anchor_vectors``: (A, d) float32, unit norm, of each anchor's
    first surface form; ``anchor_idf``: (A,) float64 (Eq. 3).
    ``edges``: the degree-capped affinity graph, (i, j) with i < j to w_ij > 0 (Eq. 2, 3).
    ``visual_visual``: whether visual anchors were also matched with visual ones (ablation).
    ``counts``: what was built, dropped or missing, by name (for example ``views_absent``, ``images_missing``).
    """

    history_id: str
    folder: Path
    encoder_id: str
    episodes: tuple[MemoryEpisode, ...]
    summary_vectors: NDArray[np.float32]
    anchors: tuple[str, ...]
    anchor_vectors: NDArray[np.float32]
    anchor_idf: NDArray[np.float64]
    edges: Mapping[tuple[int, int], float]
    counts: Mapping[str, int] = field(default_factory=dict)
    visual_visual: bool = False

    @cached_property
    def index(self) -> VectorIndex:
        """The summaries' similarity index, made at the first use; on a GPU where FAISS has one."""
        return VectorIndex(self.summary_vectors, use_gpu=gpu_available())

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """One-hop neighbours of each episode in the affinity graph, ascending."""
        lists: list[list[int]] = [[] for _ in self.episodes]
        for i, j in self.edges:
            lists[i].append(j)
            lists[j].append(i)
        return tuple(tuple(sorted(ends)) for ends in lists)

    @cached_property
    def anchor_rows(self) -> dict[str, int]:
        """Row of each anchor in ``anchors``, ``anchor_vectors`` and ``anchor_idf``."""
        return {anchor: row for row, anchor in enumerate(self.anchors)}

    def matching_anchors(self, i: int, j: int) -> frozenset[str]:
        """The matching anchor set A_ij of two episodes (Eq. 2)."""
        return self.episodes[i].anchor_sets.matching(self.episodes[j].anchor_sets, visual_visual=self.visual_visual)
