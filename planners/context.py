"""The planning context D_q: which tables and AdaMM episodes a planner sees for a question (AdaMM, §3.5.2, Eq. 9)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import bm25s
import numpy as np
from numpy.typing import NDArray

from memory.adamm.model import AdaMMMemory
from memory.adamm.tools.arguments import ANALYTIC_TOOLS, RETRIEVAL_TOOLS, TOOLS
from models.tasks.planning import Context, ContextEpisode, ToolCard

SEMANTIC_WEIGHT = 0.7
logging.getLogger("bm25s").setLevel(logging.WARNING)  # it tells of every index it builds


@dataclass(frozen=True)
class PlanningContext:
    """What a planner sees for one question, best first; scores h are Eq. 9's.

    ``tables`` and ``episodes`` are indices into the memory's tables and AdaMM episodes. ``n_left_out`` counts the entries that did not
    fit where everything is shown.
    """

    shown: Context
    tables: tuple[int, ...]
    episodes: tuple[int, ...]
    table_scores: tuple[float, ...]
    episode_scores: tuple[float, ...]
    n_left_out: int = 0


WHOLE_EPISODES = {
    "SemanticMatch": "With retrieval_scope episode it returns the content of whole episodes.",
    "EventLocate": "It returns the content of the whole episodes around the events.",
}
"""What the joint pipeline adds to the retrieval tools' cards."""


def tool_cards(*, analytic: bool, retrieval: bool, whole_episodes: bool) -> tuple[ToolCard, ...]:
    """The tools as a planner sees them, without those of an ablated memory."""
    names = (*(ANALYTIC_TOOLS if analytic else ()), *(RETRIEVAL_TOOLS if retrieval else ()))
    functions = {name: (TOOLS[name].__doc__ or "").strip() for name in names}
    if whole_episodes and retrieval:
        functions |= {name: f"{functions[name]} {addition}" for name, addition in WHOLE_EPISODES.items()}
    return tuple(ToolCard(name, function, ", ".join(TOOLS[name].model_fields)) for name, function in functions.items())


class ContextIndex:
    """Ranks the tables and episodes of one opened memory for questions.

    TokSim of Eq. 9 is BM25 over tables and episodes together, divided by its maximum for the question (0 where the maximum is 0).
    """

    def __init__(self, memory: AdaMMMemory, *, analytic: bool = True, retrieval: bool = True, whole_episodes: bool = False) -> None:
        """Index the metadata.

        Args:
            memory: the opened memory.
            analytic: False hides the tables and their tools (ablation).
            retrieval: False hides the episodes and their tools (ablation).
            whole_episodes: whether SemanticMatch returns episodes with their content (the joint pipeline).
        """
        self._tables = memory.tables if analytic else ()
        self._episodes = memory.nodes["episode"] if retrieval else ()
        self._vectors = np.concatenate(
            [memory.table_vectors[: len(self._tables)], memory.vectors["episode"].text[: len(self._episodes)]]
        ).astype(np.float32)
        self._tools = tool_cards(analytic=analytic, retrieval=retrieval, whole_episodes=whole_episodes)

    def rank(
        self, question: str, query: NDArray[np.float32], *, k_tables: int | None, k_episodes: int | None, max_entries: int | None = None
    ) -> PlanningContext:
        """Keep the best entries for a question.

        Args:
            question: its text.
            query: (d,) float32, unit norm, of the text encoder that embedded the metadata.
            k_tables: how many tables to keep (k_tab); None for all.
            k_episodes: how many episodes to keep (k_epi); None for all.
            max_entries: at most so many in all, the best ones; None for no limit. Leaving any out is counted.
        """
        scores = self.scores(question, query)
        n = len(self._tables)
        tables = _best(scores[:n], n if k_tables is None else k_tables)
        episodes = _best(scores[n:], len(self._episodes) if k_episodes is None else k_episodes)
        kept = [(float(scores[place]), 0, place) for place in tables] + [(float(scores[n + place]), 1, place) for place in episodes]
        n_left_out = 0
        if max_entries is not None and len(kept) > max_entries:
            n_left_out = len(kept) - max_entries
            kept = sorted(kept, key=lambda entry: -entry[0])[:max_entries]
            tables = [place for place in tables if (float(scores[place]), 0, place) in kept]
            episodes = [place for place in episodes if (float(scores[n + place]), 1, place) in kept]
        shown = Context(
            tuple(self._tables[place].context for place in tables),
            tuple(ContextEpisode(self._episodes[place].dates, self._episodes[place].text) for place in episodes),
            self._tools,
        )
        return PlanningContext(
            shown,
            tuple(tables),
            tuple(episodes),
            tuple(float(scores[place]) for place in tables),
            tuple(float(scores[n + place]) for place in episodes),
            n_left_out,
        )

    def scores(self, question: str, query: NDArray[np.float32]) -> NDArray[np.float64]:
        """H of Eq. 9 of every table, then every episode: (tables + episodes,) float64."""
        if not len(self._vectors):
            return np.zeros(0)
        lexical = self._lexical(question)
        top = lexical.max()
        cosines = self._vectors @ query.astype(np.float32)
        return SEMANTIC_WEIGHT * cosines.astype(np.float64) + (1 - SEMANTIC_WEIGHT) * (lexical / top if top > 0 else lexical)

    @cached_property
    def _bm25(self) -> bm25s.BM25:
        texts = [table.metadata for table in self._tables] + [episode.text for episode in self._episodes]
        index = bm25s.BM25(method="lucene")
        index.index([_words(text) for text in texts], show_progress=False)
        return index

    def _lexical(self, question: str) -> NDArray[np.float64]:
        known = [word for word in _words(question) if word and word in self._bm25.vocab_dict]  # "" is in it but has no scores
        if not known:
            return np.zeros(len(self._vectors))
        return np.asarray(self._bm25.get_scores(known), np.float64)


def _words(text: str) -> list[str]:
    """Lower-case words; names in snake_case fall apart."""
    (words,) = bm25s.tokenize(text.replace("_", " "), stopwords="en", return_ids=False, show_progress=False)
    return [str(word) for word in words] or [""]


def _best(scores: Sequence[float] | NDArray[np.float64], k: int) -> list[int]:
    """The places of the k highest scores, best first, ties to the earlier."""
    order = np.argsort(-np.asarray(scores), kind="stable")
    return [int(place) for place in order[:k]]
