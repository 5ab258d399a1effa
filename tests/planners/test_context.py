"""Eq. 9: tables and episodes ranked together by cosine and BM25."""

from pathlib import Path

import numpy as np
import pytest

from memory.adamm.model import AdaMMMemory, Column, Node, NodeVectors, Table
from planners.context import ContextIndex

D = 4


def unit(*values: float) -> np.ndarray:
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


def table(name: str, *columns: str) -> Table:
    return Table(name, f"About {name.replace('_', ' ')}.", tuple(Column(c, c, "number", "", "", ("1",), 0) for c in columns), 3, 0)


def episode(index: int, text: str) -> Node:
    return Node("episode", index, None, (index,), text, (index,), ("2031-01-01", "2031-01-01"), ())


@pytest.fixture
def memory() -> AdaMMMemory:
    tables = (table("sleep_records", "deep_sleep", "time_in_bed"), table("running_records", "distance", "pulse"))
    episodes = (episode(0, "A walk along the harbour with Mira."), episode(1, "Deep sleep was poor after the concert."))
    vectors = NodeVectors(np.stack([unit(0, 0, 1, 0), unit(0, 0, 0, 1)]), np.zeros((2, 0), np.float32), np.zeros(2, np.bool_))
    return AdaMMMemory(
        "h", Path(), "e", "", ("a", "b"), ("s", "s"), tables, np.stack([unit(1, 0, 0, 0), unit(0, 1, 0, 0)]), {"episode": episodes},
        {"episode": vectors}, (), {},
    )  # fmt: skip


def test_scores_weigh_the_cosine_and_the_normalised_lexical_match(memory: AdaMMMemory) -> None:
    query = unit(1, 1, 0, 0)
    scores = ContextIndex(memory).scores("How was my deep sleep?", query)
    cosines = np.array([query[0], query[1], 0, 0])
    lexical = (scores - 0.7 * cosines) / 0.3
    assert lexical.max() == pytest.approx(1)
    assert lexical[1] == pytest.approx(0) and lexical[2] == pytest.approx(0)  # nothing of the question stands there
    assert lexical[0] > 0 and lexical[3] > 0  # snake_case falls apart into words


def test_without_a_common_word_the_cosine_decides_alone(memory: AdaMMMemory) -> None:
    query = unit(0, 1, 1, 0)
    np.testing.assert_allclose(ContextIndex(memory).scores("zzz?", query), 0.7 * np.array([0, query[1], query[2], 0]), atol=1e-7)


def test_the_best_are_kept_in_order(memory: AdaMMMemory) -> None:
    context = ContextIndex(memory).rank("pulse while running", unit(0, 1, 0, 1), k_tables=1, k_episodes=1)
    assert [one.name for one in context.shown.tables] == ["running_records"]
    assert context.episodes == (1,) and context.tables == (1,)
    assert {tool.name for tool in context.shown.tools} == {"Lookup", "Filter", "Compute", "Rank", "SemanticMatch", "EventLocate"}


def test_everything_is_capped_and_what_is_left_out_is_counted(memory: AdaMMMemory) -> None:
    whole = ContextIndex(memory).rank("deep sleep", unit(1, 0, 0, 1), k_tables=None, k_episodes=None, max_entries=3)
    assert len(whole.tables) + len(whole.episodes) == 3 and whole.n_left_out == 1
    assert ContextIndex(memory).rank("x", unit(1, 0, 0, 0), k_tables=None, k_episodes=None, max_entries=9).n_left_out == 0


def test_an_ablated_memory_shows_neither_entries_nor_tools(memory: AdaMMMemory) -> None:
    no_tables = ContextIndex(memory, analytic=False).rank("deep sleep", unit(1, 0, 0, 1), k_tables=5, k_episodes=5)
    assert no_tables.tables == () and {tool.name for tool in no_tables.shown.tools} == {"SemanticMatch", "EventLocate"}
    no_episodes = ContextIndex(memory, retrieval=False).rank("deep sleep", unit(1, 0, 0, 1), k_tables=5, k_episodes=5)
    assert no_episodes.episodes == () and {tool.name for tool in no_episodes.shown.tools} == {"Lookup", "Filter", "Compute", "Rank"}
