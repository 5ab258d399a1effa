"""Questions made ready for a rollout: retrieved memories, embeddings, available forms and their token costs.

Everything here is fixed before the first action, so it is computed once per question and shared by the Gymnasium
environment, its batched form and evaluation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.history import Question
from data.images import load_picture
from memory.bank import MemoryBank
from memory.composition import available, form_tokens
from memory.forms import EvidenceForm
from memory.hive.retrieval import Candidate, retrieve
from memory.settings import RetrievalSettings
from models.encoders.cached import CachedJointEncoder
from models.encoders.types import TextEncoder
from models.requests import TokenCounter
from models.tasks.base import SeenImage

Observation = dict[str, NDArray[np.float32] | NDArray[np.int8]]


@dataclass(frozen=True)
class PreparedQuestion:
    """One question with its K candidate memories (rows past the last candidate are zero).

    ``instruction`` is what the benchmark adds to the question, "" for nothing.

    ``query``: (d,) float32, unit norm. ``summaries``: (K, d) float32, unit norm. ``available``: (K, F) bool.
    ``token_costs``: (K, F) int64, tokens of each form as rendered, 0 where unavailable.
    """

    question: Question
    bank: MemoryBank
    candidates: tuple[Candidate, ...]
    images: tuple[SeenImage, ...]
    instruction: str
    query: NDArray[np.float32]
    summaries: NDArray[np.float32]
    available: NDArray[np.bool_]
    token_costs: NDArray[np.int64]

    @property
    def retrieval_recall(self) -> float | None:
        """Share of the gold rounds inside the candidate memories; None without gold rounds."""
        return self.recall(np.ones(len(self.candidates), np.bool_))

    def recall(self, shown: NDArray[np.bool_]) -> float | None:
        """Share of the gold rounds inside the candidates that ``shown`` (K,) marks; None without gold rounds."""
        gold = self.question.clue_round_ids
        if not gold:
            return None
        episodes = [self.bank.episodes[candidate.episode] for candidate, is_shown in zip(self.candidates, shown, strict=False) if is_shown]
        rounds = {round_id for episode in episodes for round_id in episode.round_ids}
        return sum(round_id in rounds for round_id in gold) / len(gold)

    def observation(self) -> Observation:
        """A new observation, in the spaces of `envs.selection.observation_space`."""
        return {
            "query": self.query.copy(),
            "summaries": self.summaries.reshape(-1).copy(),
            "available": self.available.astype(np.int8),
            "token_costs": self.token_costs.reshape(-1).astype(np.float32),
        }


def prepare_questions(
    questions: Sequence[Question],
    *,
    banks: Mapping[str, MemoryBank],
    encoder: TextEncoder,
    retrieval: RetrievalSettings,
    forms: Mapping[str, EvidenceForm],
    counter: TokenCounter,
    instructions: Mapping[str, str],
) -> list[PreparedQuestion]:
    """Retrieve, expand and cost every question; ``banks`` by history id, ``instructions`` by question category."""
    queries = query_vectors(questions, encoder)
    n_memories = retrieval.k_total
    prepared = []
    for question, query in zip(questions, queries, strict=True):
        bank = banks[question.history_id]
        candidates = retrieve(bank, query, retrieval)
        summaries = np.zeros((n_memories, encoder.dimension), np.float32)
        has_form = np.zeros((n_memories, len(forms)), np.bool_)
        costs = np.zeros((n_memories, len(forms)), np.int64)
        for row, candidate in enumerate(candidates):
            summaries[row] = bank.summary_vectors[candidate.episode]
        has_form[: len(candidates)] = available(bank, candidates, forms)
        costs[: len(candidates)] = form_tokens(bank, candidates, forms, counter)
        images = tuple(SeenImage("", None if image.path is None else load_picture(image.path), image.caption) for image in question.images)
        instruction = instructions.get(question.category, "")
        prepared.append(PreparedQuestion(question, bank, candidates, images, instruction, query, summaries, has_form, costs))
    return prepared


def query_vectors(questions: Sequence[Question], encoder: TextEncoder) -> NDArray[np.float32]:
    """Embed questions to (len(questions), d) float32, unit norm.

    A joint encoder embeds a question together with its images' pixels; for any other, and for images without a file, their captions stand
    in the text.
    """
    if not isinstance(encoder, CachedJointEncoder):
        return encoder.encode([question.retrieval_text for question in questions])
    items = []
    for question in questions:
        pictures = tuple(load_picture(image.path) for image in question.images if image.path is not None)
        described = [image.caption for image in question.images if image.path is None and image.caption]
        items.append(("\n".join([question.text, *described]), pictures))
    return encoder.encode_joint(items)
