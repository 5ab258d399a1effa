"""Speed of the retrieval tools over a large opened memory, without the encoding of the query."""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from data.images import Picture
from memory.adamm.model import LEVELS, AdaMMMemory, Level, Node, NodeVectors
from memory.adamm.tools.arguments import EventLocate, SemanticMatch
from memory.adamm.tools.retrieval import RetrievalTools

D_TEXT, D_VISUAL = 384, 768
SHARE_WITH_IMAGES = 0.2
_RUNS = 40
_WORDS = ("bread", "train", "rain", "violin", "harbour", "garden", "letter")


def retrieval_seconds(*, n_events: int = 100_000) -> dict[str, float]:
    """Median seconds of each call: of EventLocate, of SemanticMatch by scope, and of the text product over all events alone.

    The hierarchy is at its flattest: as many episodes and topics as events, a fifth of them with images.
    """
    memory = large_memory(n_events)
    tools = RetrievalTools(memory, text_encoder=RandomEncoder(D_TEXT), image_encoder=RandomEncoder(D_VISUAL))
    calls = {
        "EventLocate": EventLocate(query_content="q"),
        **{f"SemanticMatch over {level}s": SemanticMatch(query_content="q", retrieval_scope=level) for level in LEVELS},
    }
    seconds: dict[str, list[float]] = {name: [] for name in [*calls, "text product"]}
    (query,) = RandomEncoder(D_TEXT).encode(["q"])
    for _ in range(_RUNS):
        for name, arguments in calls.items():
            start = time.perf_counter()
            tools.run(arguments, allowance=10)
            seconds[name].append(time.perf_counter() - start)
        start = time.perf_counter()
        _ = memory.vectors["event"].text @ query
        seconds["text product"].append(time.perf_counter() - start)
    return {name: median(found) for name, found in seconds.items()}


class RandomEncoder:
    """Random vectors for texts and pictures."""

    def __init__(self, dimension: int) -> None:
        self.id = f"random-{dimension}"
        self.dimension = dimension
        self._rng = np.random.default_rng(dimension)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Draw (n, dimension) float32, unit norm."""
        return _unit_rows(self._rng, len(texts), self.dimension)

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Draw (n, dimension) float32, unit norm."""
        return _unit_rows(self._rng, len(pictures), self.dimension)


def large_memory(n: int) -> AdaMMMemory:
    """A memory of n events, episodes and topics without tables, a fifth of the nodes with images."""
    rng = np.random.default_rng(0)
    has_visual = rng.random(n) < SHARE_WITH_IMAGES
    visual = np.zeros((n, D_VISUAL), np.float32)
    visual[has_visual] = _unit_rows(rng, int(has_visual.sum()), D_VISUAL)
    vectors = NodeVectors(_unit_rows(rng, n, D_TEXT), visual, has_visual)
    return AdaMMMemory(
        history_id="bench",
        folder=Path(),
        text_encoder_id=f"random-{D_TEXT}",
        image_encoder_id=f"random-{D_VISUAL}",
        round_ids=tuple(f"r{order}" for order in range(n)),
        round_sessions=tuple(f"s{order // 8}" for order in range(n)),
        tables=(),
        table_vectors=np.zeros((0, D_TEXT), np.float32),
        nodes={level: tuple(_node(level, row, n) for row in range(n)) for level in LEVELS},
        vectors=dict.fromkeys(LEVELS, vectors),
        schema_events=(),
        counts={},
    )


def _node(level: Level, row: int, n: int) -> Node:
    parent = None if level == "topic" or (level == "episode" and row == n - 1) else row
    children = () if level == "event" else (row,)
    return Node(
        level,
        row,
        parent,
        children,
        f"user: what {_WORDS[row % len(_WORDS)]} {row} says\nassistant: noted",
        (row,),
        ("2031-01-01", "2031-01-01"),
        (),
    )


def _unit_rows(rng: np.random.Generator, n: int, dimension: int) -> NDArray[np.float32]:
    rows = rng.standard_normal((n, dimension), np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows
