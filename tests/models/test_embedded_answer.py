"""Answers: from the shown evidence and nothing else."""

from pathlib import Path

import pytest

from data.images import Picture, load_picture
from models.embedded.answer import NOT_MENTIONED, Answerer
from models.embedded.ocr import TextReader
from models.embedded.pictures import PictureMatcher
from models.encoders.efficientnet import EfficientNetLite0
from models.store import ContentStore
from models.tasks.answer import AnswerInputs, ShownMemory, ShownPicture, ShownText
from models.tasks.base import SeenImage
from tests.pictures import draw_lines

JANUARY = """user: Today I bought a Volkar drill at Hammer & Pine. The drill cost 74 EUR, more than I planned. Greta Ohlin came along.
assistant: A Volkar drill should last for years.
user: My dentist is called Imre Solti, and the practice is on Quay Street. My locker at the gym is number 31.
assistant: Noted, the locker is number 31.
user: Boat log: wind speed 12 kn, water depth 4.5 m.
assistant: I added it to the boat log."""
MARCH = """user: I keep the ladder behind the tool shed. My locker at the gym is now number 58.
assistant: Noted.
user: I arrived in Tarnholm today and stayed at the Blue Gull. A night costs 90 EUR.
assistant: Enjoy Tarnholm.
user: Boat log: wind speed 18 kn, water depth 3.5 m.
assistant: Added."""
MAY = """user: Boat log: wind speed 15 kn, water depth 4 m. Here is my garden.
[image D3:IMG_007]
assistant: What a lovely garden, with all those tulips."""
DATES = ("2031-01-10", "2031-03-02", "2031-05-20")
GARDEN = "A garden with red tulips beside a wooden fence."


@pytest.fixture(scope="module")
def reader() -> TextReader:
    return TextReader(ContentStore(None))


@pytest.fixture(scope="module")
def answerer(reader: TextReader) -> Answerer:
    return Answerer(reader, pictures=PictureMatcher(EfficientNetLite0(ContentStore(None)), reader=reader))


@pytest.fixture(scope="module")
def gauge(tmp_path_factory: pytest.TempPathFactory) -> Picture:
    lines = ["HARBOUR GAUGE", "Wind speed: 21 kn", "Swell: 1.9 m", "Berths taken: 47"]
    return draw_lines(tmp_path_factory.mktemp("gauge") / "gauge.png", lines)


def _memories(*texts: str) -> tuple[ShownMemory, ...]:
    return tuple(ShownMemory(n, day, (ShownText("raw", text),)) for n, (day, text) in enumerate(zip(DATES, texts, strict=False), start=1))


def _ask(answerer: Answerer, question: str, memories: tuple[ShownMemory, ...], *images: SeenImage) -> str:
    return answerer.answer(AnswerInputs(question, images, memories))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which brand of drill did Mia buy?", "Volkar"),
        ("How much did Mia pay for the drill?", "74 EUR"),
        ("Who came along when Mia bought the drill?", "Greta Ohlin"),
        ("What is the name of Mia's dentist?", "Imre Solti"),
        ("Where does Mia keep the ladder?", "behind the tool shed"),
        ("In which hotel did Mia stay in Tarnholm?", "Blue Gull"),
        ("On which date did Mia travel to Tarnholm?", "2031-03-02"),
        ("What is the number of Mia's locker at the gym now?", "58"),
        ("Is Mia's locker at the gym still number 31?", "No."),
        ("Is Mia's locker at the gym number 58 now?", "Yes."),
        ("Which came first, buying the drill or the trip to Tarnholm?", "buying the drill"),
        ("How many days passed between the drill purchase and the trip to Tarnholm?", "51 days"),  # 21 + 28 + 2
        ("How much did Mia pay for the drill and the night in Tarnholm together?", "164 EUR"),
        ("What was more expensive, the drill or the night in Tarnholm?", "the night in Tarnholm"),
        ("What was the average wind speed in the boat logs?", "15 kn"),  # (12 + 18 + 15) / 3
        ("What was the highest wind speed in the boat logs?", "18 kn"),
        ("What was the lowest water depth in the boat logs?", "3.5 m"),
        ("In how many boat logs was the water depth above 3.8 m?", "2"),  # 4.5 and 4
        ("Did the wind speed increase or decrease over the boat logs?", "Increase"),  # 12 to 15
        ("What are the names of Mia's dentist and the hotel in Tarnholm?", "Imre Solti and Blue Gull"),
        ("Which image shows the garden?", "D3:IMG_007"),
        ("On 2031-01-10, what was the wind speed?", "12 kn"),
        ("Which brand of lawn mower did Mia sell?", NOT_MENTIONED),
        ("How much did the dentist cost?", NOT_MENTIONED),
        ("What did Mia cook for the class reunion?", NOT_MENTIONED),
        ("What did the inspector of the Lisbon tax office think of the drill?", NOT_MENTIONED),
        ("What pattern has the carpet in the Lisbon office beside the ladder?", NOT_MENTIONED),
        ("Which image shows a submarine in the fog?", NOT_MENTIONED),
    ],
)
def test_answers_from_text(answerer: Answerer, question: str, answer: str) -> None:
    assert _ask(answerer, question, _memories(JANUARY, MARCH, MAY)) == answer


def test_the_latest_statement_counts_in_whatever_order_memories_are_shown(answerer: Answerer) -> None:
    later, earlier = _memories(JANUARY, "user: They gave me locker 58 at the gym today.")[::-1]
    memories = (ShownMemory(1, later.date, later.items), ShownMemory(2, earlier.date, earlier.items))
    assert _ask(answerer, "What is the number of Mia's locker at the gym now?", memories) == "58"
    assert _ask(answerer, "Is Mia's locker at the gym still number 31?", memories) == "No."
    assert _ask(answerer, "Is Mia's locker at the gym still number 58?", memories) == "Yes."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the swell on the harbour gauge?", "1.9 m"),
        ("How many berths are taken on the harbour gauge?", "47"),
        ("What has the value 47 on the harbour gauge?", "Berths taken"),
        ("Which label has the highest value on the harbour gauge?", "Berths taken"),
        ("Over the boat logs and the harbour picture together, what is the average wind speed?", "16.5 kn"),  # (12 + 21) / 2
        ("By how much does the wind speed on the picture differ from the written boat log?", "9 kn"),
        ("What was the highest wind speed in the boat logs that Mia wrote?", "12 kn"),
    ],
)
def test_answers_from_pixels(answerer: Answerer, gauge: Picture, question: str, answer: str) -> None:
    seen = ShownMemory(2, DATES[1], (ShownPicture("image", "D2:IMG_001", gauge),))
    assert _ask(answerer, question, (*_memories(JANUARY), seen)) == answer


def test_nothing_is_known_that_is_not_shown(answerer: Answerer) -> None:
    assert _ask(answerer, "Which brand of drill did Mia buy?", ()) == NOT_MENTIONED
    assert _ask(answerer, "What is the swell on the harbour gauge?", _memories(JANUARY)) == NOT_MENTIONED
    assert _ask(answerer, "On 2030-07-07, what was the wind speed?", _memories(JANUARY)) == NOT_MENTIONED


def test_captions_and_summaries_carry_image_ids(answerer: Answerer) -> None:
    by_caption = (ShownMemory(1, DATES[2], (ShownText("caption D3:IMG_007", GARDEN), ShownText("caption D3:IMG_008", "A red bus."))),)
    by_summary = (ShownMemory(1, DATES[2], (ShownText("summary", "The garden was shown. (images: D3:IMG_007)"),)),)
    for memories in (by_caption, by_summary):
        assert _ask(answerer, "Which image shows the garden?", memories) == "D3:IMG_007"
    assert _ask(answerer, "Which images show a tulip garden or a bus?", by_caption) == "D3:IMG_007"
    elsewhere = "Which image shows the lighthouse keeper, his stormy island and the red boat at the pier?"
    assert _ask(answerer, elsewhere, by_caption) == NOT_MENTIONED
    assert _ask(answerer, "How many images of things that are red did Mia share?", by_caption) == "2"


def test_a_question_about_its_own_picture(answerer: Answerer, gauge: Picture, tmp_path: Path) -> None:
    part = tmp_path / "part.png"
    gauge.pixels().crop((0, 30, 300, 150)).save(part)
    asked = SeenImage("Q", load_picture(part), "")
    talk = ShownText("raw", "user: Here is the gauge. Pavel Hron stood beside me.\n[image D2:IMG_001]\nassistant: Thanks.")
    seen = (*_memories(JANUARY), ShownMemory(2, DATES[1], (talk, ShownPicture("image", "D2:IMG_001", gauge))))
    assert _ask(answerer, "Which of Mia's images shows the same thing?", seen, asked) == "D2:IMG_001"
    assert _ask(answerer, "On which date did Mia share this picture?", seen, asked) == DATES[1]
    assert _ask(answerer, "Who was with Mia when this picture was taken?", seen, asked) == "Pavel Hron"


def test_what_a_picture_without_a_file_shows(answerer: Answerer) -> None:
    text = "user: Look at this one.\n[image A1]\nassistant: This is a garden phlox! Phlox likes sun.\nuser: Thanks."
    memory = ShownMemory(1, DATES[0], (ShownText("raw", text), ShownText("caption A1", "Cluster of pink flowers with five petals.")))
    asked = SeenImage("Q", None, "Pink flowers with five petals in a cluster.")
    assert _ask(answerer, "What species of flower is shown in the image?", (memory,), asked) == "garden phlox"


def test_a_why_question_gets_the_sentence(answerer: Answerer) -> None:
    text = "user: I sold the canoe because it leaked after the winter. The weather was fine."
    assert "because it leaked" in _ask(answerer, "Why did Mia sell the canoe?", _memories(text))


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01", "²²²²-01-01", "", "soon"])
@pytest.mark.parametrize(
    "text",
    [
        "user: " + "9" * 5000 + " weeks ago I paid " + "8" * 90 + " EUR, yesterday 1" + ",000" * 60 + ".5 EUR.",
        "user: Tomorrow: 2031-99-99, 99 May, last Sunday, in 9999 weeks. [image ] (images: , )",
        "(((" * 400 + "\n:::\n\x00 [image A1" + " a" * 3000,
    ],
)
@pytest.mark.parametrize("question", ["When did Mia pay in December?", "What was the average and total?", "Is it still 5?", "?", ""])
def test_hostile_texts_get_an_answer(answerer: Answerer, day: str, text: str, question: str) -> None:
    assert _ask(answerer, question, (ShownMemory(1, day, (ShownText("raw", text),)),))
