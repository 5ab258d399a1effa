"""Reading English: words, dates, quantities, turns and questions."""

from decimal import Decimal

import pytest

from models.embedded.dates import asked_ranges, happened_on
from models.embedded.english import content_stems, sentences, stem
from models.embedded.quantities import observations, quantities
from models.embedded.question import parse_question
from models.embedded.question_kinds import Kind
from models.embedded.turns import read_turns


@pytest.mark.parametrize(
    ("one", "other"), [("bought", "buying"), ("keys", "key"), ("went", "goes"), ("children", "child"), ("Mia's", "Mia")]
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_content_stems_leave_function_words_out() -> None:
    assert content_stems("Where did you put the well-worn keys?") == (stem("put"), stem("well-worn"), stem("worn"), stem("keys"))


def test_sentences_end_at_stops_and_lines_but_not_after_abbreviations() -> None:
    assert sentences("Climb 140 m. Rate 5 K/h. Then J. Finch slept.") == ("Climb 140 m.", "Rate 5 K/h.", "Then J. Finch slept.")
    assert sentences("I met Dr. Voss. She left at 3.5 km!\nThen?") == ("I met Dr. Voss.", "She left at 3.5 km!", "Then?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went there on 3 May 2030.", "2030-05-03"),
        ("The party is on June 21st.", "2031-06-21"),  # no year: that of the day it was said
        ("Yesterday I saw it.", "2031-03-09"),
        ("We leave in two weeks.", "2031-03-24"),
        ("It broke three days ago.", "2031-03-07"),
        ("We met last Friday.", "2031-03-07"),  # 2031-03-10 is a Monday
        ("Next Monday it reopens.", "2031-03-17"),
        ("I saw it.", "2031-03-10"),
        ("On February 30 nothing happens.", "2031-03-10"),  # no such day
    ],
)
def test_when_something_happened(text: str, expected: str) -> None:
    assert happened_on(text, "2031-03-10") == expected


def test_a_month_in_a_question_covers_its_days() -> None:
    (december,) = asked_ranges("What did I buy in December?", frozenset({"2031"}))
    assert december.holds("2031-12-01") and december.holds("2031-12-31")
    assert not december.holds("2032-01-01") and not december.holds("2031-11-30") and not december.holds("not a date")


def test_quantities_leave_dates_times_and_ids_out() -> None:
    text = "On 2031-04-02 at 10:30 I paid €1,250 for D2:IMG_004, 3.5 kg and two boxes in 5 steps."
    assert [(quantity.value, quantity.unit) for quantity in quantities(text)] == [
        (Decimal(1250), "EUR"),
        (Decimal("3.5"), "kg"),
        (Decimal(2), "boxes"),
        (Decimal(5), "steps"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Garden log: soil warmth 14.5 °C, rain 8 mm and snails 31.",
        "Soil warmth was 14.5 °C, rain was 8 mm and snails were 31.",
        "Soil warmth: 14.5 °C, rain: 8 mm and snails: 31.",
    ],
)
def test_lists_of_readings_are_observations(text: str) -> None:
    found = {tuple(sorted(one.label)): (one.quantity.value, one.quantity.unit) for one in observations(text)}
    assert found == {
        tuple(sorted((stem("soil"), stem("warmth")))): (Decimal("14.5"), "°C"),
        (stem("rain"),): (Decimal(8), "mm"),
        (stem("snails"),): (Decimal(31), ""),
    }


def test_images_belong_to_the_exchange_they_stand_in() -> None:
    text = "user: Look at my boat.\n[image A7]\nassistant: Lovely boat!\nuser: And now the oars. They are new.\nassistant: Nice."
    assert [(one.text, one.speaker, one.image_ids) for one in read_turns(text)] == [
        ("Look at my boat.", "user", ("A7",)),
        ("Lovely boat!", "assistant", ("A7",)),
        ("And now the oars.", "user", ()),
        ("They are new.", "user", ()),
        ("Nice.", "assistant", ()),
    ]
    assert [one.image_ids for one in read_turns("The boat was shown. (images: A7, B2)")] == [("A7", "B2")]


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Which image shows the boat?", Kind.IMAGE),
        ("Which of Mia's images has an oar on it?", Kind.IMAGE),
        ("How many photos of boats did Mia share?", Kind.IMAGE_COUNT),
        ("On which date did Mia buy the boat?", Kind.DATE),
        ("When does the ferry leave?", Kind.CLOCK),
        ("Who was there when the boat sank?", Kind.PERSON),
        ("Where does Mia keep the oars?", Kind.PLACE),
        ("Is the boat still blue?", Kind.YES_NO),
        ("Does it contradict the dialogue to say that the boat is blue?", Kind.YES_NO),
        ("Which came first, the launch or the storm?", Kind.ORDER),
        ("How many days passed between the launch and the storm?", Kind.DAYS_BETWEEN),
        ("What was the highest average speed in the logs?", Kind.HIGHEST),
        ("How much did the oars and the sail cost together?", Kind.TOTAL),
        ("Did the speed increase or decrease?", Kind.TREND),
        ("What cost Mia more, the oars or the sail?", Kind.DEARER),
        ("In how many logs was the speed above 7 kn?", Kind.COUNT),
        ("How much was the sail?", Kind.QUANTITY),
        ("Why did Mia sell the boat?", Kind.EXPLANATION),
        ("What is the name of Mia's boat?", Kind.THING),
    ],
)
def test_kind_of_a_question(question: str, kind: Kind) -> None:
    assert parse_question(question).kind is kind


def test_the_persona_is_no_topic_but_other_names_are() -> None:
    asked = parse_question("Where did Mia meet Ole Brandvik in Tromso?")
    assert asked.subject == stem("Mia") and stem("Mia") not in asked.stems
    assert {stem("meet"), stem("Ole"), stem("Brandvik"), stem("Tromso")} <= asked.stems
