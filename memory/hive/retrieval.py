"""Retrieval: seeds by summary similarity, then affinity-guided expansion (HiVe-Mem, §3.2, Eq. 4)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memory.bank import MemoryBank
from memory.settings import RetrievalSettings


@dataclass(frozen=True)
class Candidate:
    """A retrieved memory episode; ``score`` is its summary similarity (seed) or S_exp (expansion)."""

    episode: int
    origin: Literal["seed", "expansion"]
    score: float


def retrieve(bank: MemoryBank, query_vector: NDArray[np.float32], settings: RetrievalSettings) -> tuple[Candidate, ...]:
    """Find the candidate episodes of a question: seeds by similarity, then expansions by S_exp.

    Args:
        bank: the memory of the question's history.
        query_vector: (d,) float32, unit norm, by the bank's encoder.
        settings: K_ret, K_exp, and whether to expand.

    Returns:
        At most ``settings.k_total`` candidates. Ties go to the earlier episode.
    """
    n_seeds = settings.k_ret if settings.expansion else settings.k_total
    nearest = bank.index.search(query_vector, n_seeds)
    seeds = [Candidate(row, "seed", score) for row, score in zip(nearest.rows.tolist(), nearest.scores.tolist(), strict=True)]
    if not settings.expansion:
        return tuple(seeds)
    scored = expansion_scores(bank, query_vector, [seed.episode for seed in seeds])
    best = sorted(scored, key=lambda episode: (-scored[episode], episode))[: settings.k_exp]
    return (*seeds, *(Candidate(episode, "expansion", scored[episode]) for episode in best))


def expansion_scores(bank: MemoryBank, query_vector: NDArray[np.float32], seeds: list[int]) -> dict[int, float]:
    """S_exp of every one-hop neighbour of the seeds that is not a seed (Eq. 4).

    B_u holds the anchors that u shares with any seed, whether or not that edge survived the degree cap.
    """
    found = {neighbour for seed in seeds for neighbour in bank.neighbours[seed]} - set(seeds)
    scores: dict[int, float] = {}
    for episode in sorted(found):
        shared = sorted(set().union(*(bank.matching_anchors(seed, episode) for seed in seeds)))
        rows = [bank.anchor_rows[anchor] for anchor in shared]
        similarity = (bank.anchor_vectors[rows].astype(np.float64) * query_vector.astype(np.float64)).sum(axis=1)
        scores[episode] = float(sum(idf * sim for idf, sim in zip(bank.anchor_idf[rows].tolist(), similarity.tolist(), strict=True)))
    return scores
