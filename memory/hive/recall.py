"""What horizontal expansion gains: recall of gold episodes against semantic retrieval of equal size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from data.history import Question
from memory.bank import MemoryBank
from memory.hive.retrieval import Candidate, retrieve
from memory.settings import RetrievalSettings

_RESAMPLES = 10_000


@dataclass(frozen=True)
class ExpansionGain:
    """Mean recall of gold episodes over questions with clues.

    ``low`` and ``high`` bound the 95 % interval of ``difference`` = ``expanded`` - ``semantic``, from a bootstrap
    over histories: questions of one history are not independent.
    """

    n_questions: int
    n_histories: int
    expanded: float
    semantic: float
    difference: float
    low: float
    high: float


def gold_episodes(bank: MemoryBank, question: Question) -> frozenset[int]:
    """The episodes that hold the question's gold rounds."""
    clues = set(question.clue_round_ids)
    return frozenset(episode.index for episode in bank.episodes if clues.intersection(episode.round_ids))


def episode_recall(gold: frozenset[int], candidates: Sequence[Candidate]) -> float:
    """Share of the gold episodes that are among the candidates; ``gold`` must not be empty."""
    return len(gold.intersection(candidate.episode for candidate in candidates)) / len(gold)


def expansion_gain(
    questions: Sequence[Question],
    query_vectors: NDArray[np.float32],
    banks: Mapping[str, MemoryBank],
    settings: RetrievalSettings,
    rng: np.random.Generator,
) -> ExpansionGain:
    """Compare k_ret seeds + k_exp expansions with the k_ret + k_exp most similar episodes.

    Args:
        questions: those without clues are left out.
        query_vectors: (len(questions), d) float32, unit norm, of their retrieval texts.
        banks: by history id.
        settings: K_ret and K_exp; ``expansion`` is switched on and off here.
        rng: draws the bootstrap.

    Raises:
        ValueError: no question has clues.
    """
    recalls: dict[str, list[tuple[float, float]]] = {}
    for question, vector in zip(questions, query_vectors, strict=True):
        bank = banks[question.history_id]
        gold = gold_episodes(bank, question)
        if gold:
            both = (episode_recall(gold, retrieve(bank, vector, replace(settings, expansion=expansion))) for expansion in (True, False))
            recalls.setdefault(question.history_id, []).append((next(both), next(both)))
    if not recalls:
        raise ValueError("no question has clues, so recall cannot be measured")
    sums = np.array([np.sum(rows, axis=0) for rows in recalls.values()])
    sizes = np.array([len(rows) for rows in recalls.values()])
    expanded, semantic = (float(value) for value in sums.sum(axis=0) / sizes.sum())
    drawn = rng.integers(len(sizes), size=(_RESAMPLES, len(sizes)))
    differences = (sums[:, 0] - sums[:, 1])[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = (float(value) for value in np.quantile(differences, [0.025, 0.975]))
    return ExpansionGain(int(sizes.sum()), len(sizes), expanded, semantic, expanded - semantic, low, high)
