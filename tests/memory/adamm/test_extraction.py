import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from data.history import History, ImageRef, Round, Session
from memory.adamm.extraction import Extraction, RoundContent, extract, read_rounds
from memory.adamm.model import Observation
from memory.hive.asking import ask_model
from memory.hive.episodes import cut_episodes
from models.embedded.ocr import TextReader
from models.errors import ReplyError
from models.requests import Reply, Request, Usage
from models.store import ContentStore
from tests.memory.adamm.fakes import LabelModel
from tests.memory.fakes import KeywordModel, WordCounter, quiet
from tests.pictures import draw_lines


class Recorder:
    """Replies with what `LabelModel` says, or with the given text to extract requests, and lists what it was asked."""

    def __init__(self, extracted: str | None = None) -> None:
        self.asked: list[Request] = []
        self._extracted = extracted

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self.asked += requests
        replies = [reply for _, reply in LabelModel().stream(requests)]
        if self._extracted is None:
            return replies
        return [
            Reply("", self._extracted, Usage(1, 1, 0), 0.0) if request.task == "extract" else reply
            for request, reply in zip(requests, replies, strict=True)
        ]


def one_round(folder: Path, *, user: str = "My Sleep time:\n ５.５ hrs today", with_file: bool = True) -> History:
    picture = draw_lines(folder / "a.png", ["Pulse 61 bpm"]) if with_file else None
    image = ImageRef("img1", picture and picture.path, "a watch")
    return History("h", (Session("S", "2031-01-02", (Round("r1", user, "Good", (image,)),)),))


def extracted(of: History, values: Sequence[tuple[str, str, str, str]], reader: TextReader | None = None) -> Extraction:
    """What is kept of the given values: attribute, value, quote, image id."""
    names = ("attribute", "value", "quote", "image_id")
    model = Recorder(json.dumps({"observations": [dict(zip(names, one, strict=True)) for one in values]}))
    rounds = read_rounds(of, captions="model", generate=model.generate, progress=quiet)
    return extract(rounds, generate=model.generate, reader=reader, progress=quiet)


def test_one_request_a_round_with_images_and_captions(tmp_path: Path) -> None:
    model = Recorder()
    rounds = read_rounds(one_round(tmp_path), captions="model", generate=model.generate, progress=quiet)
    extract(rounds, generate=model.generate, reader=None, progress=quiet)
    assert [request.task for request in model.asked] == ["caption", "extract"]
    inputs = model.asked[1].inputs
    assert (inputs.date, inputs.dialogue) == ("2031-01-02", "user: My Sleep time:\n ５.５ hrs today\n[image img1]\nassistant: Good")
    assert [(image.image_id, image.picture is not None, image.caption) for image in inputs.images] == [("img1", True, "")]
    assert inputs.captions == (("img1", "picture img1"),)


def test_the_caption_request_is_that_of_the_other_part(tmp_path: Path) -> None:
    mine, other, history = Recorder(), KeywordModel(), one_round(tmp_path)
    read_rounds(history, captions="model", generate=mine.generate, progress=quiet)
    ask_model(cut_episodes(history, limit_tokens=9, counter=WordCounter()), generate=other.generate, captions="model", progress=quiet)
    keys = [[request.key("m") for request in asked if request.task == "caption"] for asked in (mine.asked, other.asked)]
    assert keys[0] == keys[1] and len(keys[0]) == 1


def test_captions_of_the_dataset(tmp_path: Path) -> None:
    model = Recorder()
    assert _captions(one_round(tmp_path), "dataset", model) == (("img1", "a watch"),)
    assert _captions(one_round(tmp_path, with_file=False), "model", model) == (("img1", "a watch"),)
    assert model.asked == []


def _captions(of: History, captions: str, model: Recorder) -> tuple[tuple[str, str], ...]:
    (content,) = read_rounds(of, captions=captions, generate=model.generate, progress=quiet)  # type: ignore[arg-type]
    assert isinstance(content, RoundContent)
    return content.captions


def test_an_image_without_a_file_shows_its_caption_once(tmp_path: Path) -> None:
    model = Recorder()
    rounds = read_rounds(one_round(tmp_path, with_file=False), captions="model", generate=model.generate, progress=quiet)
    extract(rounds, generate=model.generate, reader=None, progress=quiet)
    (request,) = model.asked
    assert request.inputs.images[0].caption == "a watch" and request.inputs.captions == ()


def test_what_is_grounded_is_kept_in_order_as_written(tmp_path: Path) -> None:
    found = extracted(
        one_round(tmp_path),
        [
            ("Sleep Time", " 5.5 hrs ", "sleep  TIME: 5.5 hrs", ""),
            ("pulse", "61 bpm", "", "img1"),
            ("sleep-time", "５.５ hrs", "５.５ hrs today", "img1"),
        ],
    )
    assert found.observations == (
        Observation(0, 0, "sleep_time", "5.5 hrs", "sleep  TIME: 5.5 hrs", ""),
        Observation(0, 1, "pulse", "61 bpm", "", "img1"),
        Observation(0, 2, "sleep_time", "５.５ hrs", "５.５ hrs today", ""),
    )
    assert {name: n for name, n in found.counts.items() if n} == {"observations": 3, "duplicates": 1}


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        (("%", "5.5 hrs", "5.5 hrs", ""), "observations_without_name"),
        (("x" * 61, "5.5 hrs", "5.5 hrs", ""), "observations_without_name"),
        (("sleep", " \n", "5.5 hrs", ""), "observations_without_value"),
        (("sleep", "5.5 hrs", "", ""), "observations_without_pointer"),
        (("sleep", "5.5 hours", "Sleep time: 5.5 hrs", ""), "observations_not_in_dialogue"),  # the value is not in the quote
        (("sleep", "6 hrs", "Sleep time: 6 hrs", ""), "observations_not_in_dialogue"),  # the quote is not in the dialogue
        (("sleep", "watch", "a watch", ""), "observations_not_in_dialogue"),  # captions are not dialogue
        (("sleep", "5.5 hrs", "", "img2"), "observations_of_unknown_image"),
    ],
)
def test_what_is_not_grounded_is_dropped_and_counted(tmp_path: Path, value: tuple[str, str, str, str], counted: str) -> None:
    found = extracted(one_round(tmp_path), [value, ("good", "Good", "good", "")])
    assert [(one.attribute, one.position) for one in found.observations] == [("good", 0)]
    assert {name: n for name, n in found.counts.items() if n} == {counted: 1, "observations": 1}


def test_a_disagreement_with_the_reader_is_counted_and_kept(tmp_path: Path) -> None:
    reader = TextReader(ContentStore(tmp_path / "store.sqlite"))
    values = [("pulse", "61 BPM", "", "img1"), ("pulse", "67 bpm", "", "img1"), ("sleep", "today", "today", "")]
    found = extracted(one_round(tmp_path), values, reader)
    assert len(found.observations) == 3
    assert found.counts["observations_not_recognised"] == 1
    assert extracted(one_round(tmp_path, with_file=False), values, reader).counts["observations_not_recognised"] == 0


def test_unusable_replies_are_told_together(tmp_path: Path) -> None:
    rounds = (Round("r1", "a", "b"), Round("r2", "c", "d"))
    model = Recorder('{"observations": 3}')
    content = read_rounds(History("h", (Session("S", "", rounds),)), captions="model", generate=model.generate, progress=quiet)
    with pytest.raises(ReplyError, match=r"(?s)2 unusable replies.*extract of 'r1': .*extract of 'r2': "):
        extract(content, generate=model.generate, reader=None, progress=quiet)
