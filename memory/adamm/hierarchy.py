"""The hierarchy of events, AdaMM episodes and topics, built one round after another (AdaMM, Appendix A, Eq. 11 and 12)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from data.images import Picture
from memory.adamm.model import Level, Node, NodeVectors
from memory.adamm.settings import AdaMMSettings
from memory.adamm.similarity import FusedIndex, FusionWeights, Probe, pool, stack
from models.encoders.types import ImageEncoder, TextEncoder, TextImageEncoder
from models.tasks.adamm import DescribeInputs

MAX_WORDPIECES = 256 - 2  # what MiniLM reads, less the two marks that it puts around a text


@dataclass(frozen=True)
class EventContent:
    """One round, as it becomes an event.

    ``date`` is its session's ("" where there is none), ``text`` what user and assistant said, ``captions`` are (image id, caption),
    ``pictures`` those of its images that have files, ``image_ids`` the ids of all.
    """

    round_order: int
    session_id: str
    date: str
    text: str
    captions: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...]
    image_ids: tuple[str, ...]


@dataclass(frozen=True)
class Hierarchy:
    """Nodes and vectors by level. ``counts``: nodes of each level, texts that are longer than MiniLM reads."""

    nodes: Mapping[Level, tuple[Node, ...]]
    vectors: Mapping[Level, NodeVectors]
    counts: Mapping[str, int]


def build_hierarchy(
    events: Sequence[EventContent],
    *,
    settings: AdaMMSettings,
    describe: Callable[[DescribeInputs], str],
    text_encoder: TextEncoder,
    image_encoder: ImageEncoder | None,
    count_tokens: Callable[[str], int],
) -> Hierarchy:
    """Build the hierarchy of a history's rounds.

    Each event joins the current episode or closes it; a closed episode joins a topic or founds one. After every insertion the
    description is made anew and encoded. The last episode stays open: it is attached to no topic, and the last node of the topic
    level stands for it. Rounds added at the end change nothing but what becomes of that episode.

    Args:
        events: the rounds in order; their text gets the captions where no text-image encoder makes images searchable by words.
        settings: thresholds (strict), weights of Eq. 13, and the longest gap inside an episode.
        describe: asks the model; called once an event and once a closed episode.
        text_encoder: encodes events (all at once) and descriptions.
        image_encoder: encodes pictures; None leaves all nodes without visual vectors.
        count_tokens: MiniLM's WordPieces of a text.

    Raises:
        models.errors.ReplyError: a description is empty.
        models.errors.BackendError: a model call failed.
    """
    growth = _Growth(_events(events, text_encoder, image_encoder), settings, describe, text_encoder)
    for row, event in enumerate(events):
        growth.add(row, near=row == 0 or _near(events[row - 1].date, event.date, settings.gap_days))
    growth.leave_open()
    drafts: dict[Level, Sequence[_Draft]] = {"event": growth.events, "episode": growth.episodes, "topic": growth.topics}
    n_visual = 0 if image_encoder is None else image_encoder.encode_images([]).shape[1]
    vectors = {level: stack([node.probe for node in nodes], text_encoder.dimension, n_visual) for level, nodes in drafts.items()}
    long = {level: sum(count_tokens(node.text) > MAX_WORDPIECES for node in nodes) for level, nodes in drafts.items()}
    counts = {
        **{"events": len(events), "adamm_episodes": len(growth.episodes), "topics": len(growth.topics)},
        **{"events_truncated": long["event"], "descriptions_truncated": long["episode"] + long["topic"]},
    }
    return Hierarchy(_nodes(events, growth), vectors, counts)


@dataclass(frozen=True)
class _Draft:
    """A node while the hierarchy grows: what it says, its vectors, and its children's places in the level below."""

    text: str
    probe: Probe
    children: tuple[int, ...]


class _Growth:
    """The three levels, and where an event and a closed episode go (Appendix A)."""

    def __init__(
        self, events: Sequence[_Draft], settings: AdaMMSettings, describe: Callable[[DescribeInputs], str], encoder: TextEncoder
    ) -> None:
        self.events = events
        self.episodes: list[_Draft] = []
        self.topics: list[_Draft] = []
        self._settings = settings
        self._describe = describe
        self._encoder = encoder

    def add(self, event: int, *, near: bool) -> None:
        """Put an event into the current episode if it is near in time and similar; else close that one and begin another."""
        current = self.episodes[-1:]
        if current and near and self._nearest(self.events[event], current, self._settings.episode_threshold) is not None:
            self.episodes[-1] = self._described("episode", (*current[0].children, event))
        else:
            if current:
                self._close(len(self.episodes) - 1)
            self.episodes.append(self._described("episode", (event,)))

    def leave_open(self) -> None:
        """Let the last episode, which no topic has yet, stand for itself in the topic level."""
        if self.episodes:
            last = self.episodes[-1]
            self.topics.append(_Draft(last.text, last.probe, (len(self.episodes) - 1,)))

    def _close(self, episode: int) -> None:
        topic = self._nearest(self.episodes[episode], self.topics, self._settings.topic_threshold)
        if topic is None:
            self.topics.append(self._described("topic", (episode,)))
        else:
            self.topics[topic] = self._described("topic", (*self.topics[topic].children, episode))

    def _nearest(self, draft: _Draft, among: Sequence[_Draft], threshold: float) -> int | None:
        """The place of the most similar node if its similarity is above the threshold; ties go to the earlier."""
        visual = [node.probe.visual for node in among if node.probe.visual is not None]
        vectors = stack([node.probe for node in among], len(draft.probe.text), len(visual[0]) if visual else 0)
        weights = FusionWeights(self._settings.text_weight, self._settings.visual_weight)
        nearest = FusedIndex(vectors, weights).search(draft.probe, 1)
        found = zip(nearest.rows.tolist(), nearest.scores.tolist(), strict=True)
        return next((row for row, score in found if score > threshold), None)

    def _described(self, level: Literal["episode", "topic"], children: tuple[int, ...]) -> _Draft:
        """A node of these children: described by the model, encoded from that, its visual vector pooled from theirs."""
        below = self.events if level == "episode" else self.episodes
        members = [below[child] for child in children]
        text = self._describe(DescribeInputs(level, tuple(member.text for member in members)))
        visual = pool([member.probe.visual for member in members if member.probe.visual is not None])
        return _Draft(text, Probe(self._encoder.encode([text])[0], visual), children)


def _near(before: str, after: str, gap_days: int) -> bool:
    """Whether two dates are at most so many days apart, whichever is first; an unknown date is near to all."""
    return not before or not after or abs((date.fromisoformat(after) - date.fromisoformat(before)).days) <= gap_days


def _events(events: Sequence[EventContent], text_encoder: TextEncoder, image_encoder: ImageEncoder | None) -> list[_Draft]:
    texts = [_event_text(event, with_captions=not isinstance(image_encoder, TextImageEncoder)) for event in events]
    pictures = [picture for event in events for picture in event.pictures] if image_encoder else []
    seen = dict(zip(pictures, image_encoder.encode_images(pictures), strict=True)) if image_encoder else {}
    visual = [pool([seen[picture] for picture in event.pictures if picture in seen]) for event in events]
    vectors = map(Probe, text_encoder.encode(texts), visual)
    return [_Draft(text, probe, ()) for text, probe in zip(texts, vectors, strict=True)]


def _event_text(event: EventContent, *, with_captions: bool) -> str:
    captions = [f"[image {image_id}: {caption}]" for image_id, caption in event.captions if caption] if with_captions else []
    return "\n".join([event.text, *captions])


def _nodes(events: Sequence[EventContent], growth: _Growth) -> dict[Level, tuple[Node, ...]]:
    episode_of = {event: place for place, episode in enumerate(growth.episodes) for event in episode.children}
    topic_of = {episode: place for place, topic in enumerate(growth.topics[:-1]) for episode in topic.children}
    event_nodes = tuple(
        Node("event", row, episode_of[row], (), draft.text, (event.round_order,), (event.date, event.date), event.image_ids)
        for row, (event, draft) in enumerate(zip(events, growth.events, strict=True))
    )
    episode_nodes = _grouped("episode", growth.episodes, event_nodes, topic_of)
    return {"event": event_nodes, "episode": episode_nodes, "topic": _grouped("topic", growth.topics, episode_nodes, {})}


def _grouped(level: Level, drafts: Sequence[_Draft], below: Sequence[Node], parents: Mapping[int, int]) -> tuple[Node, ...]:
    nodes = []
    for index, draft in enumerate(drafts):
        members = [below[child] for child in draft.children]
        days = sorted(day for member in members for day in member.dates if day) or [""]
        rounds = tuple(round_order for member in members for round_order in member.rounds)
        image_ids = tuple(image_id for member in members for image_id in member.image_ids)
        nodes.append(Node(level, index, parents.get(index), draft.children, draft.text, rounds, (days[0], days[-1]), image_ids))
    return tuple(nodes)
