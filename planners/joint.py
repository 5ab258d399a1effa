"""Both papers joined: AdaMM's planner reads its tables, and its retrieval tools return HiVe-Mem's memory episodes.

SemanticMatch over episodes takes seeds by summary similarity and neighbours in the affinity graph (HiVe-Mem, Eq. 4); EventLocate
ranks AdaMM's events and returns the memory episodes that hold them. The selector composes all memory episodes of one call together.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from data.images import Picture
from memory.adamm.tools.arguments import EventLocate, SemanticMatch
from memory.adamm.tools.result import EvidenceUnit, ToolResult
from memory.adamm.tools.toolbox import Retrieval
from memory.bank import MemoryBank
from memory.composition import available, compose
from memory.forms import EvidenceForm
from memory.hive.retrieval import Candidate, retrieve
from memory.settings import RetrievalSettings
from models.encoders.types import TextEncoder
from models.tasks.answer import ShownMemory
from planners.composers import Composer

MAX_SEEDS, MAX_NEIGHBOURS = 5, 2
MEMORY_EPISODE = "memory_episode"


class JointRetrieval:
    """The retrieval tools over both memories of one history; scopes ``event`` and ``topic`` stay AdaMM's."""

    def __init__(self, bank: MemoryBank, adamm: Retrieval, *, encoder: TextEncoder, expansion: bool) -> None:
        """Join them.

        Args:
            bank: HiVe-Mem's memory.
            adamm: the retrieval tools over AdaMM's memory of the same history.
            encoder: the one that embedded the bank's summaries.
            expansion: False takes as many episodes by summary similarity alone (ablation).
        """
        self._bank = bank
        self._adamm = adamm
        self._encoder = encoder
        self._expansion = expansion
        self._episode_of = {round_id: episode.index for episode in bank.episodes for round_id in episode.round_ids}
        self._order_of = {round_id: order for order, round_id in enumerate(self._episode_of)}  # episodes follow the history

    def run(self, arguments: SemanticMatch | EventLocate, *, allowance: int, query_image: Picture | None = None) -> ToolResult:
        """Run one call; a memory episode is one unit whatever it shows."""
        budget = min(allowance, arguments.result_budget or allowance)
        if isinstance(arguments, EventLocate):
            located = self._adamm.run(arguments, allowance=budget, query_image=query_image)
            return self._result(arguments, self._holding(located)[:budget])
        if arguments.retrieval_scope != "episode":
            return self._adamm.run(arguments, allowance=allowance, query_image=query_image)
        n_seeds = min(MAX_SEEDS, budget)
        settings = RetrievalSettings(k_ret=n_seeds, k_exp=min(MAX_NEIGHBOURS, budget - n_seeds), expansion=self._expansion)
        (query,) = self._encoder.encode([arguments.query_content])
        return self._result(arguments, list(retrieve(self._bank, query, settings)))

    def _holding(self, located: ToolResult) -> list[Candidate]:
        """The memory episodes that hold the located events and their windows, once each, in order of the events' ranks."""
        found: dict[int, Candidate] = {}
        units, scores = located.returned["ranked_memory_units"], located.returned["relevance_scores"]
        for unit, score in zip(units, scores, strict=True):
            for round_id in unit["sources"]:
                episode = self._episode_of.get(round_id)
                if episode is not None:
                    found.setdefault(episode, Candidate(episode, "seed", score))
        return [*found.values()]

    def _result(self, arguments: SemanticMatch | EventLocate, candidates: list[Candidate]) -> ToolResult:
        episodes = [self._bank.episodes[candidate.episode] for candidate in candidates]
        units = tuple(
            EvidenceUnit(
                "memory",
                f"[Memory episode] date: {episode.date}; rounds: {', '.join(episode.round_ids)}\n{episode.summary}",
                tuple(self._order_of[round_id] for round_id in episode.round_ids),
                tuple(image.id for image in episode.images),
                candidate.score,
            )
            for episode, candidate in zip(episodes, candidates, strict=True)
        )
        returned = {
            "ranked_memory_units": [
                {
                    "level": MEMORY_EPISODE,
                    "episode": candidate.episode,
                    "origin": candidate.origin,
                    "time": episode.date,
                    "sources": list(episode.round_ids),
                    "image_ids": list(unit.image_ids),
                    "text": unit.text,
                }
                for episode, candidate, unit in zip(episodes, candidates, units, strict=True)
            ],
            "relevance_scores": [candidate.score for candidate in candidates],
        }
        return ToolResult(type(arguments).__name__, arguments, returned, units)


class EpisodeComposer:
    """Renders the memory episodes of one call in the forms that a composer chooses for the question."""

    def __init__(self, bank: MemoryBank, composer: Composer, *, forms: Mapping[str, EvidenceForm], query: NDArray[np.float32]) -> None:
        """Prepare for one question; ``query``: (d,) float32, its unit vector, as the composer was trained on."""
        self._bank = bank
        self._composer = composer
        self._forms = forms
        self._query = query

    def __call__(self, result: ToolResult) -> tuple[ShownMemory, ...] | None:
        """The composed memories of a call that returned memory episodes; None for other units."""
        units = result.returned["ranked_memory_units"]
        if not units or any(unit["level"] != MEMORY_EPISODE for unit in units):
            return None
        scores = result.returned["relevance_scores"]
        candidates = [Candidate(unit["episode"], unit["origin"], score) for unit, score in zip(units, scores, strict=True)]
        has_form = available(self._bank, candidates, self._forms)
        summaries = self._bank.summary_vectors[[candidate.episode for candidate in candidates]]
        (bits,) = self._composer.select_batch(self._query[None], summaries[None], has_form[None])
        return compose(self._bank, candidates, bits, self._forms)
