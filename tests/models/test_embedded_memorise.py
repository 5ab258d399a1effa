"""Summaries and anchors of one episode."""

import pytest

from models.embedded.memorise import memorise
from models.embedded.ocr import TextReader
from models.embedded.phrases import noun_phrases
from models.store import ContentStore
from models.tasks.base import SeenImage
from models.tasks.hive import MemoriseInputs, MemoriseReply, parse_memorise

EPISODE = """user: Today I adopted an old greyhound called Fenna from the shelter in Marwick. It rained on the way and we got wet.
[image D4:IMG_001]
assistant: Congratulations! An old greyhound is usually a very calm companion for a small flat.
user: My greyhound Fenna had her first walk through Dove Park. She met a spaniel. The pond was frozen and nobody was about.
assistant: Greyhounds love short walks. Did she sleep well after such a long first day?
user: She slept for eleven hours. I will order a second blanket for her basket next week, probably a green one with dots."""


def _count(text: str) -> int:
    return len(text.split())


def _memorise(text: str, *images: SeenImage) -> MemoriseReply:
    return parse_memorise(memorise(MemoriseInputs("2031-02-03", text, images), reader=TextReader(ContentStore(None)), count=_count))


def test_the_summary_keeps_headlines_and_drops_details() -> None:
    reply = _memorise(EPISODE)
    assert "adopted an old greyhound called Fenna" in reply.summary
    assert not any(detail in reply.summary for detail in ("rained", "spaniel", "second blanket", "basket"))
    assert all(sentence.strip() in EPISODE for sentence in reply.summary.split(". "))
    assert 0.12 * _count(EPISODE) <= _count(reply.summary) <= 0.35 * _count(EPISODE)


def test_anchors_are_names_and_things_of_at_most_two_words() -> None:
    anchors = {anchor.casefold() for anchor in _memorise(EPISODE).textual_anchors}
    assert {"greyhound", "fenna", "dove park", "marwick"} <= anchors
    assert all(len(anchor.split()) <= 2 for anchor in anchors)
    assert not {"today", "it", "did", "quite", "usually", "order"} & anchors


def test_a_missing_picture_is_anchored_by_its_caption() -> None:
    image = SeenImage("D4:IMG_001", None, "A brindle greyhound lying on a striped sofa.")
    assert _memorise(EPISODE).visual_anchors == ()
    assert {"striped sofa", "sofa", "greyhound"} <= set(_memorise(EPISODE, image).visual_anchors)


def test_the_same_episode_gives_the_same_reply() -> None:
    assert _memorise(EPISODE) == _memorise(EPISODE)


@pytest.mark.parametrize("text", ["user: Hi", "", "assistant: [image X]"])
def test_an_episode_with_little_text_still_has_a_summary(text: str) -> None:
    assert _memorise(text).summary


def test_repeated_and_longer_phrases_come_first() -> None:
    phrases = noun_phrases(["The copper kettle is new.", "I like the copper kettle.", "The table is old."], 3)
    assert phrases == ["copper kettle", "kettle", "table"]
