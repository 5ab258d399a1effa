"""Tests of the hierarchy against a slow reading of Appendix A, and over a generated history with the real encoders."""

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.history import History
from data.images import load_picture
from data.loaders.mem_gallery import load_mem_gallery
from data.sample.generate import generate_sample
from memory.adamm.hierarchy import EventContent, Hierarchy, build_hierarchy
from memory.adamm.model import LEVELS
from models.encoders.cached import CachedTextEncoder, CachedTextImageEncoder
from models.encoders.efficientnet import EfficientNetLite0
from models.encoders.minilm import MiniLM
from models.encoders.types import ImageEncoder
from models.store import ContentStore
from models.tasks.adamm import DescribeInputs
from tests.memory.adamm.letters import LetterImages, LetterTextImages, LetterTexts, event, letters, settings, together


def _build(
    events: Sequence[EventContent], image_encoder: ImageEncoder | None = None, asked: list[DescribeInputs] | None = None, **changes: float
) -> Hierarchy:
    def describe(inputs: DescribeInputs) -> str:
        if asked is not None:
            asked.append(inputs)
        return together(inputs)

    return build_hierarchy(
        events,
        settings=settings(**changes),
        describe=describe,
        text_encoder=LetterTexts(),
        image_encoder=image_encoder,
        count_tokens=lambda text: len(text.split()),
    )


def _children(hierarchy: Hierarchy, level: str) -> list[tuple[int, ...]]:
    return [node.children for node in hierarchy.nodes[level]]


# Where events and episodes go


def test_an_episode_ends_where_the_similarity_is_not_above_the_threshold() -> None:
    # The cosine of A and ABCD is 1 / 2, exactly.
    events = [event(0, "A"), event(1, "A B C D")]
    assert _children(_build(events, episode_threshold=0.499), "episode") == [(0, 1)]
    assert _children(_build(events, episode_threshold=0.5), "episode") == [(0,), (1,)]


def test_an_event_is_compared_with_the_whole_current_episode_only() -> None:
    # B joins A B (0.71); the fourth is like the first episode, but that one is closed.
    found = _build([event(0, "A B"), event(1, "B"), event(2, "C"), event(3, "A B")])
    assert _children(found, "episode") == [(0, 1), (2,), (3,)]
    # With A B B the episode has moved away from A: 1 / √5 < 0.6, though the first event alone would have taken it (0.71).
    assert _children(_build([event(0, "A B"), event(1, "B"), event(2, "A")]), "episode") == [(0, 1), (2,)]


def test_topics_need_no_adjacency_and_their_threshold_is_strict() -> None:
    events = [event(0, "A"), event(1, "B"), event(2, "A B C D"), event(3, "A"), event(4, "D")]
    below = _build(events, topic_threshold=0.499, episode_threshold=0.9)
    # ABCD is like A and B alike (1 / 2): the earlier takes it. The last A: with A ABCD (0.76), with B (0).
    assert _children(below, "topic") == [(0, 2, 3), (1,), (4,)]
    at = _build(events, topic_threshold=0.5, episode_threshold=0.9)
    assert _children(at, "topic") == [(0, 3), (1,), (2,), (4,)]
    assert [node.parent for node in at.nodes["episode"]] == [0, 1, 2, 0, None]
    assert [node.parent for node in at.nodes["event"]] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("dates", "episodes"),
    [
        (["2031-01-01", "2031-01-02", "2031-01-03"], [(0, 1, 2)]),  # counted from the last event, not from the first
        (["2031-01-01", "2031-01-03", "2031-01-03"], [(0,), (1, 2)]),
        (["2031-02-28", "2031-03-01", "2031-03-03"], [(0, 1), (2,)]),
        (["2031-01-01", "", "2031-01-09"], [(0, 1, 2)]),  # what is missing splits nothing
        (["2031-01-09", "2031-01-01", "2031-01-01"], [(0,), (1, 2)]),  # a step back is a gap as well
    ],
)
def test_the_gap(dates: list[str], episodes: list[tuple[int, ...]]) -> None:
    events = [event(order, "A", date=day) for order, day in enumerate(dates)]
    assert _children(_build(events), "episode") == episodes
    assert _children(_build(events, gap_days=8), "episode") == [(0, 1, 2)]


def test_pictures_decide_only_where_both_have_them() -> None:
    # Text cosine 1 / 2: with like pictures 0.6 · 0.5 + 0.4 · 1 = 0.7, with unlike ones 0.3.
    same, other = event(1, "A B C D", pictures="A"), event(1, "A B C D", pictures="B")
    first = event(0, "A", pictures="A")
    images = LetterImages()
    assert _children(_build([first, same], images, episode_threshold=0.69), "episode") == [(0, 1)]
    assert _children(_build([first, other], images, episode_threshold=0.31), "episode") == [(0,), (1,)]
    for events in ([event(0, "A"), same], [first, event(1, "A B C D")]):
        assert _children(_build(events, images, episode_threshold=0.49), "episode") == [(0, 1)]
        assert _children(_build(events, images, episode_threshold=0.50), "episode") == [(0,), (1,)]
    assert _children(_build([first, other], None, episode_threshold=0.49), "episode") == [(0, 1)]


# What nodes hold


def test_nodes() -> None:
    events = [
        event(0, "A", date="2031-01-01", pictures="A B"),
        event(1, "A A", date="2031-01-02"),
        event(2, "C", date="2031-01-02", pictures="A"),
        event(3, "A", date="2031-01-03"),
        event(4, "D", pictures="D"),
    ]
    asked: list[DescribeInputs] = []
    found = _build(events, LetterImages(), asked)
    assert asked == [
        DescribeInputs("episode", ("A",)),
        DescribeInputs("episode", ("A", "A A")),
        DescribeInputs("topic", ("A A A",)),
        DescribeInputs("episode", ("C",)),
        DescribeInputs("topic", ("C",)),
        DescribeInputs("episode", ("A",)),
        DescribeInputs("topic", ("A A A", "A")),
        DescribeInputs("episode", ("D",)),
    ]
    episodes, topics = found.nodes["episode"], found.nodes["topic"]
    assert [(node.index, node.text, node.rounds, node.dates, node.image_ids) for node in episodes] == [
        (0, "A A A", (0, 1), ("2031-01-01", "2031-01-02"), ("i0.0", "i0.1")),
        (1, "C", (2,), ("2031-01-02", "2031-01-02"), ("i2.0",)),
        (2, "A", (3,), ("2031-01-03", "2031-01-03"), ()),
        (3, "D", (4,), ("", ""), ("i4.0",)),
    ]
    assert [(node.children, node.text, node.rounds, node.dates, node.image_ids) for node in topics] == [
        ((0, 2), "A A A A", (0, 1, 3), ("2031-01-01", "2031-01-03"), ("i0.0", "i0.1")),
        ((1,), "C", (2,), ("2031-01-02", "2031-01-02"), ("i2.0",)),
        ((3,), "D", (4,), ("", ""), ("i4.0",)),
    ]
    assert (topics[-1].parent, episodes[-1].parent) == (None, None)
    # Visual: A and B pooled in event 0, and nothing from its neighbour without pictures.
    np.testing.assert_allclose(found.vectors["episode"].visual[0], letters("A B"), atol=1e-7)
    np.testing.assert_allclose(found.vectors["topic"].visual, [letters("A B"), letters("A"), letters("D")], atol=1e-7)
    assert found.vectors["episode"].has_visual.tolist() == [True, True, False, True]
    assert not found.vectors["episode"].visual[2].any()
    np.testing.assert_array_equal(found.vectors["topic"].text, [letters("A"), letters("C"), letters("D")])
    assert all(not array.flags.writeable for vectors in found.vectors.values() for array in vars(vectors).values())
    assert found.counts == {"events": 5, "adamm_episodes": 4, "topics": 3, "events_truncated": 0, "descriptions_truncated": 0}


def test_the_dates_of_a_node_are_its_earliest_and_its_latest() -> None:
    days = ["", "2031-01-03", "2031-01-02", "2031-01-03", ""]
    (episode,) = _build([event(order, "A", date=day) for order, day in enumerate(days)]).nodes["episode"]
    assert episode.dates == ("2031-01-02", "2031-01-03")


def test_captions_are_read_only_where_words_cannot_find_pictures() -> None:
    events = [event(0, "user: hello", caption="A and B"), event(1, "user: none")]
    store = ContentStore(None)
    for images in (None, LetterImages(), EfficientNetLite0(store)):
        assert [node.text for node in _build(events, images).nodes["event"]] == ["user: hello\n[image i0.0: A and B]", "user: none"]
    for words_too in (LetterTextImages(), CachedTextImageEncoder(LetterTextImages(), store=store)):
        assert [node.text for node in _build(events, words_too).nodes["event"]] == ["user: hello", "user: none"]


def test_events_are_encoded_in_one_batch() -> None:
    encoder = LetterTexts()
    events = [event(order, text) for order, text in enumerate("ABAC")]
    build_hierarchy(
        events,
        settings=settings(),
        describe=together,
        text_encoder=encoder,
        image_encoder=None,
        count_tokens=lambda text: len(text.split()),
    )
    assert encoder.batches[0] == ["A", "B", "A", "C"]
    assert {len(batch) for batch in encoder.batches[1:]} == {1}


def test_texts_that_the_encoder_cuts_are_counted() -> None:
    long, short = "A " * 255, "B " * 254  # two of MiniLM's 256 are its own marks
    assert _build([event(0, short), event(1, long), event(2, short)]).counts == {
        **{"events": 3, "adamm_episodes": 3, "topics": 3},
        **{"events_truncated": 1, "descriptions_truncated": 2},
    }


def test_no_events() -> None:
    for images in (None, LetterImages()):
        found = _build([], images)
        assert found.nodes == {"event": (), "episode": (), "topic": ()}
        assert found.vectors["topic"].text.shape == (0, 5)
        assert found.vectors["event"].visual.shape == (0, 0 if images is None else 5)


# Against a slow reading, and growing

TEXTS = st.text(alphabet="ABCD", max_size=3)
DAYS = st.sampled_from(["", "2031-01-01", "2031-01-02", "2031-01-04"])
EVENTS = st.lists(st.tuples(TEXTS, st.sampled_from(["", "A", "B", "C D", "A BC"]), DAYS), max_size=10).map(
    lambda rounds: [event(order, text, pictures=pictures, date=day) for order, (text, pictures, day) in enumerate(rounds)]
)
# No cosine of these letters lies on one of them.
THRESHOLDS = st.sampled_from([0.303, 0.513, 0.613, 0.713, 0.813])


@given(EVENTS, THRESHOLDS, THRESHOLDS)
def test_equals_a_slow_reading(events: list[EventContent], episode_threshold: float, topic_threshold: float) -> None:
    found = _build(events, LetterImages(), episode_threshold=episode_threshold, topic_threshold=topic_threshold)
    assert (_children(found, "episode"), _children(found, "topic")) == _slowly(events, episode_threshold, topic_threshold)


def _slowly(events: list[EventContent], episode_threshold: float, topic_threshold: float) -> tuple[list[tuple[int, ...]], ...]:
    def visual(rows: list[list[float]]) -> list[float]:
        mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        norm = math.sqrt(sum(x * x for x in mean))
        return np.array([x / norm for x in mean], np.float32).tolist()

    def similarity(one: tuple[str, list[float]], other: tuple[str, list[float]]) -> float:
        text = sum(a * b for a, b in zip(letters(one[0]).tolist(), letters(other[0]).tolist(), strict=True))
        if not (one[1] and other[1]):
            return text
        return 0.6 * text + 0.4 * sum(a * b for a, b in zip(one[1], other[1], strict=True))

    def parent_of(members: list[tuple[str, list[float]]]) -> tuple[str, list[float]]:
        pictured = [member[1] for member in members if member[1]]
        return " ".join(member[0] for member in members), visual(pictured) if pictured else []

    leaves = [(e.text, visual([letters(p.sha256).tolist() for p in e.pictures]) if e.pictures else []) for e in events]
    episodes: list[list[int]] = []
    topics: list[list[int]] = []
    described: list[tuple[str, list[float]]] = []
    for number, leaf in enumerate(leaves):
        joins = False
        if episodes:
            days = [events[number - 1].date, events[number].date]
            apart = 0 if "" in days else abs((date.fromisoformat(days[1]) - date.fromisoformat(days[0])).days)
            joins = apart <= 1 and similarity(leaf, described[-1]) > episode_threshold
            if not joins:
                scores = [similarity(described[-1], parent_of([described[episode] for episode in topic])) for topic in topics]
                best = scores.index(max(scores)) if scores else -1
                if scores and scores[best] > topic_threshold:
                    topics[best].append(len(episodes) - 1)
                else:
                    topics.append([len(episodes) - 1])
        if joins:
            episodes[-1].append(number)
            described[-1] = parent_of([leaves[child] for child in episodes[-1]])
        else:
            episodes.append([number])
            described.append(parent_of([leaf]))
    if episodes:
        topics.append([len(episodes) - 1])
    return [tuple(episode) for episode in episodes], [tuple(topic) for topic in topics]


@given(EVENTS, st.integers(0, 10), THRESHOLDS, THRESHOLDS)
def test_more_rounds_change_only_the_open_episode(
    events: list[EventContent], n: int, episode_threshold: float, topic_threshold: float
) -> None:
    thresholds = {"episode_threshold": episode_threshold, "topic_threshold": topic_threshold}
    _assert_grown(_build(events[:n], LetterImages(), **thresholds), _build(events, LetterImages(), **thresholds))


def _assert_grown(before: Hierarchy, after: Hierarchy) -> None:
    closed = len(before.nodes["episode"][:-1])
    n_events = len(before.nodes["event"])
    assert after.nodes["event"][:n_events] == before.nodes["event"]
    assert after.nodes["episode"][:closed] == before.nodes["episode"][:closed]
    for level, n in (("event", n_events), ("episode", closed)):
        for name, array in vars(before.vectors[level]).items():
            np.testing.assert_array_equal(vars(after.vectors[level])[name][:n], array[:n])
    attached = [tuple(child for child in node.children if child < closed) for node in after.nodes["topic"]]
    assert [children for children in attached if children] == [node.children for node in before.nodes["topic"][:-1]]
    if before.nodes["episode"]:
        still_open = before.nodes["episode"][-1].children
        assert after.nodes["episode"][closed].children[: len(still_open)] == still_open


# With the real encoders


def first_sentences(inputs: DescribeInputs) -> str:
    return " ".join(part.removeprefix("user: ").split(". ")[0] for part in inputs.parts)


def contents(history: History) -> list[EventContent]:
    """The rounds of a history, with the dataset's captions."""
    found: list[EventContent] = []
    for session in history.sessions:
        for round_ in session.rounds:
            captions = tuple((image.id, image.caption) for image in round_.images)
            pictures = tuple(load_picture(image.path) for image in round_.images if image.path)
            text = f"user: {round_.user}\nassistant: {round_.assistant}"
            found.append(
                EventContent(len(found), session.id, session.date, text, captions, pictures, tuple(image.id for image in round_.images))
            )
    return found


def test_a_generated_history(tmp_path: Path) -> None:
    generate_sample(tmp_path / "sample", seed=0, n_histories=1, n_questions=20)
    events = contents(load_mem_gallery(tmp_path / "sample").histories[0])[:24]
    store, minilm = ContentStore(None), MiniLM()

    def build(some: Sequence[EventContent]) -> Hierarchy:
        return build_hierarchy(
            some,
            settings=settings(episode_threshold=0.2, topic_threshold=0.4),  # the subject changes with every round or two
            describe=first_sentences,
            text_encoder=CachedTextEncoder(minilm, store=store),
            image_encoder=EfficientNetLite0(store),
            count_tokens=minilm.counter.count_text,
        )

    before, found, again = build(events[:15]), build(events), build(events)
    _assert_grown(before, found)
    assert again.nodes == found.nodes and again.counts == found.counts
    assert 1 < len(found.nodes["topic"]) < len(found.nodes["episode"]) < len(events)
    pictured = [bool(each.pictures) for each in events]
    assert found.vectors["event"].has_visual.tolist() == pictured and any(pictured)
    for level in LEVELS:
        vectors, nodes = found.vectors[level], found.nodes[level]
        assert sorted(order for node in nodes for order in node.rounds) == list(range(len(events)))
        np.testing.assert_array_equal(again.vectors[level].text, vectors.text)
        np.testing.assert_allclose(vectors.text, minilm.encode([node.text for node in nodes]), atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(vectors.visual, axis=1), vectors.has_visual, atol=1e-5)
