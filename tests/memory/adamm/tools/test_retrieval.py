"""Tests of the retrieval tools: ranking against brute force, windows, budgets, what a unit shows."""

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memory.adamm.hierarchy import EventContent, build_hierarchy
from memory.adamm.model import AdaMMMemory, Level
from memory.adamm.tools.arguments import EventLocate, SemanticMatch
from memory.adamm.tools.result import ToolResult
from memory.adamm.tools.retrieval import RetrievalTools
from models.encoders.types import ImageEncoder
from tests.memory.adamm.letters import LetterImages, LetterTextImages, LetterTexts, event, letters, picture, settings, together


def _memory(events: Sequence[EventContent], image_encoder: ImageEncoder | None = None, **changes: float) -> AdaMMMemory:
    """A memory without tables; rounds are called r0, r1, …"""
    hierarchy = build_hierarchy(
        events,
        settings=settings(**changes),
        describe=together,
        text_encoder=LetterTexts(),
        image_encoder=image_encoder,
        count_tokens=lambda text: len(text.split()),
    )
    return AdaMMMemory(
        history_id="h",
        folder=Path(),
        text_encoder_id=LetterTexts.id,
        image_encoder_id="" if image_encoder is None else image_encoder.id,
        round_ids=tuple(f"r{each.round_order}" for each in events),
        round_sessions=tuple(each.session_id for each in events),
        tables=(),
        table_vectors=np.zeros((0, 5), np.float32),
        nodes=hierarchy.nodes,
        vectors=hierarchy.vectors,
        schema_events=(),
        counts=hierarchy.counts,
    )


def _tools(events: Sequence[EventContent], image_encoder: ImageEncoder | None = None, **changes: float) -> RetrievalTools:
    return RetrievalTools(_memory(events, image_encoder, **changes), text_encoder=LetterTexts(), image_encoder=image_encoder)


def _match(query: str, scope: Level, budget: int | None = None) -> SemanticMatch:
    return SemanticMatch(query_content=query, retrieval_scope=scope, result_budget=budget)


def _rounds(result: ToolResult) -> list[tuple[int, ...]]:
    return [unit.rounds for unit in result.units]


# Ranking

EVENTS = st.lists(
    st.tuples(st.text(alphabet="ABCD", max_size=3), st.sampled_from(["", "A", "B D"]), st.sampled_from("12")), max_size=9
).map(lambda rounds: [event(order, text, pictures=pictures, date=f"2031-01-0{day}") for order, (text, pictures, day) in enumerate(rounds)])


@given(EVENTS, st.text(alphabet="ABCD", min_size=1, max_size=3), st.none() | st.integers(1, 10), st.integers(0, 10))
def test_ranking_equals_brute_force(events: list[EventContent], query: str, budget: int | None, allowance: int) -> None:
    memory = _memory(events, LetterTextImages())
    tools = RetrievalTools(memory, text_encoder=LetterTexts(), image_encoder=LetterTextImages())
    most = allowance if budget is None else min(budget, allowance)
    level: Level
    for level in ("event", "episode", "topic"):
        scores = _scores(memory, level, letters(query))
        expected = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:most]
        found = tools.run(_match(query, level, budget), allowance=allowance)
        assert _rounds(found) == [memory.nodes[level][row].rounds for row in expected]
        assert [unit.score for unit in found.units] == found.returned["relevance_scores"] == [scores[row] for row in expected]
        assert all(math.isfinite(score) for score in found.returned["relevance_scores"])
    located = tools.run(EventLocate(query_content=query, result_budget=budget), allowance=allowance)
    scores = _scores(memory, "event", letters(query))
    assert located.returned["relevance_scores"] == [scores[row] for row in _located(memory, scores, most)]


def _scores(memory: AdaMMMemory, level: Level, query: NDArray[np.float32]) -> list[float]:
    vectors = memory.vectors[level]

    def cosine(row: NDArray[np.float32]) -> float:
        total = 0.0
        for a, b in zip(row.tolist(), query.tolist(), strict=True):
            total += a * b
        return total

    return [
        0.6 * cosine(vectors.text[row]) + 0.4 * cosine(vectors.visual[row]) if vectors.has_visual[row] else cosine(vectors.text[row])
        for row in range(len(memory.nodes[level]))
    ]


def _located(memory: AdaMMMemory, scores: list[float], most: int) -> list[int]:
    """The events that make units: those that no better one's window holds."""
    found: list[int] = []
    for row in sorted(range(len(scores)), key=lambda row: (-scores[row], row)):
        if not any(abs(row - other) <= 1 and memory.round_sessions[row] == memory.round_sessions[other] for other in found):
            found.append(row)
    return found[:most]


def test_ties_go_to_the_earlier_node() -> None:
    tools = _tools([event(order, text) for order, text in enumerate("ABABA")])
    assert _rounds(tools.run(_match("A", "event"), allowance=3)) == [(0,), (2,), (4,)]
    assert _rounds(tools.run(_match("C", "event"), allowance=2)) == [(0,), (1,)]


def test_the_open_episode_is_found_as_episode_and_as_its_own_topic() -> None:
    tools = _tools([event(0, "A"), event(1, "B"), event(2, "A")])
    assert _rounds(tools.run(_match("A", "episode"), allowance=2)) == [(0,), (2,)]
    assert _rounds(tools.run(_match("A", "topic"), allowance=2)) == [(0,), (2,)]


# EventLocate


def test_windows_stay_inside_the_session() -> None:
    days = ["2031-01-01"] * 3 + ["2031-01-02"] * 3
    tools = _tools([event(order, text, date=day) for order, (text, day) in enumerate(zip("ABCDAB", days, strict=True))])

    def window(query: str) -> tuple[int, ...]:
        return _rounds(tools.run(EventLocate(query_content=query, result_budget=1), allowance=10))[0]

    assert (window("A"), window("B"), window("C"), window("D")) == ((0, 1), (0, 1, 2), (1, 2), (3, 4))


def test_an_event_in_a_better_units_window_makes_no_unit() -> None:
    # By similarity with A: 1, then 2 (in the window of 1), then 3 (shares 2 with it), then 5, 4 and 0.
    texts = ["B", "A", "A B", "A B B", "B", "A B B B"]
    tools = _tools([event(order, text) for order, text in enumerate(texts)])
    assert _rounds(tools.run(EventLocate(query_content="A"), allowance=10)) == [(0, 1, 2), (2, 3, 4), (4, 5)]
    assert _rounds(tools.run(EventLocate(query_content="A"), allowance=2)) == [(0, 1, 2), (2, 3, 4)]


# What a unit shows


def test_what_is_returned() -> None:
    events = [
        event(0, "user: A", date="2031-01-01", pictures="A"),
        event(1, "user: A A", date="2031-01-02"),
        event(2, "user: C", caption="a C"),
    ]
    tools = _tools(events, LetterImages())
    episode = tools.run(_match("A", "episode", 1), allowance=10)
    text = "[Episode] date: 2031-01-01 to 2031-01-02; rounds: r0, r1; images: i0.0\nuser: A user: A A"
    score = episode.units[0].score
    assert episode.tool == "SemanticMatch" and episode.returned == {
        "ranked_memory_units": [
            {
                **{"level": "episode", "time": "2031-01-01 to 2031-01-02"},
                **{"round_orders": [0, 1], "sources": ["r0", "r1"], "image_ids": ["i0.0"], "text": text},
            }
        ],
        "relevance_scores": [score],
    }
    (unit,) = episode.units
    assert (unit.kind, unit.text, unit.rounds, unit.image_ids) == ("memory", text, (0, 1), ("i0.0",))
    event_unit = tools.run(_match("C", "event", 1), allowance=10)
    assert event_unit.units[0].text == "[Event] rounds: r2; images: i2.0\nuser: C\n[image i2.0: a C]"
    shown = event_unit.returned["ranked_memory_units"][0]
    assert (shown["level"], shown["time"], shown["round_order"], shown["round_orders"]) == ("event", "", 2, [2])
    assert tools.run(_match("C", "topic", 1), allowance=10).units[0].text.startswith("[Topic] rounds: r2; images: i2.0\n")
    json.dumps([episode.returned, event_unit.returned], allow_nan=False)


def test_a_located_event_is_shown_between_its_neighbours() -> None:
    events = [event(0, "B", date="2031-01-01"), event(1, "A", date="2031-01-01", pictures="A"), event(2, "C", date="2031-01-01")]
    located = _tools(events, LetterImages()).run(EventLocate(query_content="A", result_budget=1), allowance=10)
    assert located.tool == "EventLocate"
    assert located.units[0].text == (
        "[Event before] date: 2031-01-01; rounds: r0\nB\n"
        "[Event] date: 2031-01-01; rounds: r1; images: i1.0\nA\n"
        "[Event after] date: 2031-01-01; rounds: r2\nC"
    )
    assert (located.units[0].rounds, located.units[0].image_ids) == ((0, 1, 2), ("i1.0",))
    shown = located.returned["ranked_memory_units"][0]
    assert (shown["round_order"], shown["round_orders"], shown["sources"]) == (1, [0, 1, 2], ["r0", "r1", "r2"])


# Budgets


@pytest.mark.parametrize(("budget", "allowance", "n"), [(2, 10, 2), (10, 3, 3), (None, 4, 4), (None, 10, 6), (10, 10, 6), (1, 0, 0)])
def test_budgets(budget: int | None, allowance: int, n: int) -> None:
    tools = _tools([event(order, text) for order, text in enumerate("ABCABC")])
    assert len(tools.run(_match("A", "event", budget), allowance=allowance).units) == n
    locating = tools.run(EventLocate(query_content="A", result_budget=budget), allowance=allowance)
    assert len(locating.units) == min(n, 3)  # windows of the others hold the rest


def test_an_empty_memory() -> None:
    tools = _tools([])
    for arguments in (_match("A", "event"), _match("A", "episode"), _match("A", "topic"), EventLocate(query_content="A")):
        found = tools.run(arguments, allowance=10)
        assert (found.units, found.returned) == ((), {"ranked_memory_units": [], "relevance_scores": []})


# The visual term


def test_how_a_query_meets_pictures(caplog: pytest.LogCaptureFixture) -> None:
    # By text both are alike, 1 / √2; the second has a picture of B.
    events = [event(0, "A B"), event(1, "A B", pictures="B")]
    memory = _memory(events, LetterTextImages())
    fused = RetrievalTools(memory, text_encoder=LetterTexts(), image_encoder=LetterTextImages())
    text_only = RetrievalTools(memory, text_encoder=LetterTexts(), image_encoder=LetterTextImages(), query_fusion="text_only")
    text = math.sqrt(0.5)

    def scores(tools: RetrievalTools, query: str, image: str = "") -> list[float]:
        result = tools.run(_match(query, "event"), allowance=10, query_image=picture(image) if image else None)
        return [score for _, score in sorted((unit.rounds, unit.score) for unit in result.units if unit.score is not None)]

    with caplog.at_level(logging.DEBUG, "memory.adamm.tools.retrieval"):
        assert scores(fused, "B") == pytest.approx([text, 0.6 * text + 0.4])  # the query's text is compared with the picture
    assert "text=0.707" in caplog.text and "visual=1.0" in caplog.text
    assert scores(fused, "A") == pytest.approx([text, 0.6 * text])
    assert scores(fused, "A", "B") == pytest.approx([text, 0.6 * text + 0.4])  # its picture is
    assert scores(text_only, "A") == scores(text_only, "A", "B") == pytest.approx([text, text])
    plain = _tools(events, LetterImages())
    assert scores(plain, "A") == pytest.approx([text, text])  # no text branch: text weight 1
    assert scores(plain, "A", "B") == pytest.approx([text, 0.6 * text + 0.4])


def test_other_encoders_are_refused() -> None:
    memory = _memory([event(0, "A", pictures="A")], LetterImages())
    with pytest.raises(ValueError, match="image vectors are by letter pictures, not letters and pictures; use the encoders"):
        RetrievalTools(memory, text_encoder=LetterTexts(), image_encoder=LetterTextImages())
    with pytest.raises(ValueError, match="memory of 'h': its text vectors are by letters, not letters and pictures; its image"):
        RetrievalTools(memory, text_encoder=LetterTextImages(), image_encoder=LetterTextImages())
    with pytest.raises(ValueError, match="image vectors are by none, not letter pictures"):
        RetrievalTools(_memory([event(0, "A")]), text_encoder=LetterTexts(), image_encoder=LetterImages())
