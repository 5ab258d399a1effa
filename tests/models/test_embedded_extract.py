"""Extraction by rules: labelled values of sentences and pictures, and what is no observation."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.embedded.extract import extract
from models.embedded.labelled_values import LONGEST_LABEL, label_of, labelled_values
from models.embedded.measures import measures
from models.embedded.ocr import TextReader
from models.store import ContentStore
from models.tasks.adamm import ExtractedValue, ExtractInputs, parse_extract
from models.tasks.base import SeenImage
from tests.pictures import draw_lines


@pytest.fixture(scope="module")
def reader() -> TextReader:
    return TextReader(ContentStore(None))


def _extract(reader: TextReader, dialogue: str, *images: SeenImage) -> tuple[ExtractedValue, ...]:
    return parse_extract(extract(ExtractInputs("2031-05-06", dialogue, images, ()), reader=reader))


@pytest.mark.parametrize(
    ("sentence", "pairs"),
    [
        (
            "Boat log: wind speed 12 kn, water depth at 4.5 m and crew 3.",
            [("wind speed", "12 kn"), ("water depth", "4.5 m"), ("crew", "3")],
        ),
        ("Also fuel used: 9 l and time in harbour: 45 min.", [("fuel used", "9 l"), ("time in harbour", "45 min")]),
        (
            "From my notes, HRV 61 ms, first crack 410 s and climbing 12 m.",
            [("HRV", "61 ms"), ("first crack", "410 s"), ("climbing", "12 m")],
        ),
        ("Then the tyre pressure was 2.3 bar.", [("tyre pressure", "2.3 bar")]),
        ("Time spent 54 min, bees counted 310.", [("Time spent", "54 min"), ("bees counted", "310")]),
        ("Resting pulse 54 bpm.", [("Resting pulse", "54 bpm")]),
        ("Blood pressure: 120/80 mmHg", [("Blood pressure", "120/80 mmHg")]),
        ("Sleep time: 5 h 30 min", [("Sleep time", "5 h 30 min")]),
        ("**Rent**: $1,200.50", [("Rent", "$1,200.50")]),
        ("bedtime 22:30, deep sleep 78 min", [("bedtime", "22:30"), ("deep sleep", "78 min")]),
        ("Mood: calm, energy: low", [("Mood", "calm"), ("energy", "low")]),
        ("Morning log. weight: 58 kg, mood: good", [("weight", "58 kg"), ("mood", "good")]),
        ("Fuel log: station: Shell, litres: 40 l", [("station", "Shell"), ("litres", "40 l")]),
        ("I said: hello, weight: 58 kg", [("weight", "58 kg")]),
        ("Departure: 2031-05-06", [("Departure", "2031-05-06")]),
        ("I think my budget is around $70–$90 for that.", [("budget", "$70–$90")]),
        ("The living room is about 45 square meters.", [("living room", "45 square meters")]),
        ("A letter came: the rent for my garage is now 130 EUR.", [("rent for garage", "130 EUR")]),
        ("The drill had cost me 74 EUR at the market.", [("drill cost", "74 EUR")]),
        ("The drill costs 74 EUR.", [("drill cost", "74 EUR")]),
        ("My locker at the gym is number 31.", [("locker number", "31")]),
        ("At the gym I was given locker number 58.", [("locker number", "58")]),
        ("I had an average pulse of 131 bpm.", [("average pulse", "131 bpm")]),
        ("We drove at a speed of 60 miles per hour.", [("speed", "60 miles per hour")]),
        ("Nora's weight: 61 kg", [("weight", "61 kg")]),
    ],
)
def test_labels_and_values_as_written(sentence: str, pairs: list[tuple[str, str]]) -> None:
    found = labelled_values(sentence)
    assert [(one.label, one.value) for one in found] == pairs
    for one in found:
        assert one.value in sentence[one.start : one.end]


@pytest.mark.parametrize(
    "sentence",
    [
        "I waited 20 minutes at the station.",
        "We walked 5 km and Nora walked 6 km.",
        "Is a pulse of 131 bpm, with sleep 5 h, too much?",
        "If the fee is 50 EUR, I will pay.",
        "Most purifiers are around 30 dB.",
        "The party was 3 days ago.",
        "The party was 3 days before mine.",
        "Our trip to the coast and back with all of them is 5 days long.",
        "It was 74 EUR.",
        "I met a group of 5 people.",
        "Greta paid 74 EUR.",
        "The work took 29 h.",
        "Dinner at 8.",
        "Dinner at 19:30.",
        "Good news: it works",
        "Plan: bake a second cake for everyone",
        "The dinner at 8 was late.",
        "The 15-inch screen is fine, and so is the L2 car of 2031.",
        "The winners are: number #3 and number #2.",
        "",
        ":",
    ],
)
def test_what_is_no_observation(sentence: str) -> None:
    assert labelled_values(sentence) == ()


def test_the_same_field_has_the_same_label_in_text_and_picture() -> None:
    for label in ("Deep sleep", "Bees counted", "Eating out", "Calories", "Outside temperature", "Time in bed"):
        said = labelled_values(f"Log: {label.lower()} 12, other thing 3.")
        assert label_of(label).lower() == said[0].label == label.lower()
    assert label_of("Monday") == "Monday"
    assert label_of("") == label_of("12") == label_of("a label of far too many words") == ""


def test_ranges_and_compounds_are_one_value() -> None:
    text = "20–25 m² or 5 h 30 min, 3 to 4 kg, $70-$90, 7:15 am, two hours, 12 kg 5 km"
    assert [text[one.start : one.end] for one in measures(text)] == [
        "20–25 m²",
        "5 h 30 min",
        "3 to 4 kg",
        "$70-$90",
        "7:15 am",
        "12 kg",
        "5 km",
    ]


def test_both_speakers_and_pictures_with_their_pointers(reader: TextReader, tmp_path: Path) -> None:
    board = draw_lines(tmp_path / "board.png", ["HARBOUR GAUGE", "Wind speed: 21 kn", "Swell: 1.9 m", "State: rough sea"])
    dialogue = (
        "user: Boat log: wind speed 12 kn, water depth 4.5 m. How deep is it there, 3 m?\n[image D1:IMG_001]\n"
        "assistant: Noted, the water depth was 4.5 m."
    )
    images = (SeenImage("D1:IMG_001", board, ""), SeenImage("D1:IMG_002", None, "A gauge that says: wind speed 99 kn."))
    assert _extract(reader, dialogue, *images) == (
        ExtractedValue("wind speed", "12 kn", "wind speed 12 kn", ""),
        ExtractedValue("water depth", "4.5 m", "water depth 4.5 m", ""),
        ExtractedValue("water depth", "4.5 m", "water depth was 4.5 m", ""),
        ExtractedValue("Wind speed", "21 kn", "", "D1:IMG_001"),
        ExtractedValue("Swell", "1.9 m", "", "D1:IMG_001"),
        ExtractedValue("State", "rough sea", "", "D1:IMG_001"),
    )


def test_words_that_the_dialogue_does_not_hold_in_one_stretch_are_no_quote(reader: TextReader) -> None:
    assert _extract(reader, "user: Log: pulse (images: D1:IMG_001) 61 bpm, sleep 7 h.") == (
        ExtractedValue("sleep", "7 h", "sleep 7 h", ""),
    )


def test_what_is_said_twice_in_the_same_words_is_one_observation(reader: TextReader) -> None:
    assert len(_extract(reader, "user: Pulse 61 bpm.\nassistant: Pulse 61 bpm.")) == 1


def test_a_round_of_small_talk_has_no_observations(reader: TextReader) -> None:
    assert _extract(reader, "user: Good morning!\nassistant: Good morning, how are you today?") == ()
    assert json.loads(extract(ExtractInputs("", "", (), ()), reader=reader)) == {"observations": []}


@given(st.text(alphabet=st.sampled_from("a deepslp:;,.()[]/-–*$°%0123456789\n€'’|=#KHzmin"), max_size=120))
def test_every_pointer_holds_whatever_is_said(text: str) -> None:
    dialogue = f"user: {text}\nassistant: Log: {text}"
    found = parse_extract(extract(ExtractInputs("2031-05-06", dialogue, (), ()), reader=TextReader(ContentStore(None))))
    for one in found:
        assert one.quote in dialogue
        assert one.value in one.quote
        assert one.value.strip()
        assert 1 <= len(one.attribute.split()) <= LONGEST_LABEL
        assert one.image_id == ""


def test_long_texts_do_not_take_long() -> None:
    for text in ("pulse at " * 4000, "1,000" * 5000, "a: 1, " * 4000, "(" * 20000, "to 5 " * 4000):
        started = time.process_time()
        labelled_values(text)
        assert time.process_time() - started < 2
