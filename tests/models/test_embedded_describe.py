"""Descriptions of episodes and topics."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.embedded.describe import describe
from models.tasks.adamm import DescribeInputs, parse_describe

EVENTS = (
    "user: Today I adopted an old greyhound called Fenna. It rained on the way.\nassistant: Congratulations on the greyhound!",
    "user: My greyhound Fenna had her first walk through Dove Park. Nobody came.\n[image D1:IMG_001]\nassistant: Greyhounds love walks.",
    "user: The greyhound Fenna won a small race in Marwick. We were late.\nassistant: What do greyhounds eat?",
)


def _describe(level: Literal["episode", "topic"], *parts: str) -> str:
    return parse_describe(describe(DescribeInputs(level, parts)))


def test_an_episode_is_described_by_its_most_central_sentences_in_order() -> None:
    text = _describe("episode", *EVENTS)
    headlines = ("Today I adopted an old greyhound called Fenna.", "My greyhound Fenna had her first walk through Dove Park.")
    assert text == " ".join((*headlines, "The greyhound Fenna won a small race in Marwick."))


def test_a_topic_is_described_from_the_descriptions_of_its_episodes() -> None:
    first, second = "I adopted a greyhound called Fenna.", "I sailed a regatta on the Marwick lake."
    assert _describe("topic", first, second) == f"{first} {second}"


@pytest.mark.parametrize("n", [1, 40, 400])
def test_a_description_stays_short_however_much_there_is(n: int) -> None:
    parts = [
        f"user: On day {place} I paid {place} EUR for the boat and rowed to harbour number {place}. It was fine." for place in range(n)
    ]
    text = _describe("episode", *parts)
    assert 5 <= len(text.split()) <= 80
    assert text.count(".") <= 3
    assert text == _describe("episode", *parts)


def test_one_endless_sentence_is_cut() -> None:
    assert len(_describe("episode", "user: " + "word " * 5000).split()) == 80


@given(st.lists(st.text(max_size=60), max_size=5))
def test_there_is_always_a_description(parts: list[str]) -> None:
    assert 1 <= len(_describe("episode", *parts).split()) <= 80
