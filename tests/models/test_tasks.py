"""Requests say the same thing twice, as messages and as inputs: the inputs are rebuilt here from the messages alone."""

import dataclasses
from pathlib import Path

import pytest

from data.images import Picture
from models.errors import ReplyError
from models.requests import ImagePart, Request, TextPart
from models.tasks.answer import NO_MEMORY, AnswerInputs, ShownMemory, ShownPicture, ShownText, answer_request
from models.tasks.base import SeenImage
from models.tasks.hive import (
    CaptionInputs,
    GroundInputs,
    MemoriseInputs,
    caption_request,
    ground_request,
    memorise_request,
    parse_ground,
    parse_memorise,
)
from tests.pictures import draw_lines


@pytest.fixture
def picture(tmp_path: Path) -> Picture:
    return draw_lines(tmp_path / "a.png", ["Harbor Cafe"])


def read_answer_inputs(request: Request) -> AnswerInputs:
    """Read the inputs of an answer request back from its user message."""
    memories: list[ShownMemory] = []
    images: list[SeenImage] = []
    question, instruction = "", ""
    parts = list(request.messages[1].parts)
    while parts:
        part = parts.pop(0)
        assert isinstance(part, TextPart)
        if part.text.startswith("[Memory "):
            number, _, date = part.text.removeprefix("[Memory ").partition("] ")
            memories.append(ShownMemory(int(number), date, ()))
            continue
        if part.text == NO_MEMORY:
            continue
        if part.text.startswith("Question: "):
            question = part.text.removeprefix("Question: ")
            continue
        if part.text.startswith("Question image (not available), described as: "):
            images.append(SeenImage("", None, part.text.partition("described as: ")[2]))
            continue
        following = parts.pop(0) if parts and isinstance(parts[0], ImagePart) else None
        if part.text == "Question image:":
            assert isinstance(following, ImagePart)
            images.append(SeenImage("", following.picture, ""))
        elif question:
            instruction = part.text
        else:
            item: ShownText | ShownPicture
            if isinstance(following, ImagePart):
                form, _, image_id = part.text.removesuffix(":").partition(" ")
                item = ShownPicture(form, image_id, following.picture)
            else:
                form, _, text = part.text.partition(": ")
                item = ShownText(form, text)
            memories[-1] = dataclasses.replace(memories[-1], items=(*memories[-1].items, item))
    return AnswerInputs(question, tuple(images), tuple(memories), instruction)


def test_answer_inputs_hold_nothing_that_the_messages_do_not(picture: Picture) -> None:
    shown = (
        ShownMemory(1, "2031-04-02", (ShownText("raw", "user: hi\nassistant: hello"), ShownPicture("image", "D1-IMG_001", picture))),
        ShownMemory(2, "2031-04-03", (ShownText("summary", "A walk."),)),
    )
    images = (SeenImage("", picture, ""), SeenImage("", None, "A red boat."))
    for inputs in (AnswerInputs("What?", images, shown, "One word."), AnswerInputs("What?", (), ())):
        assert read_answer_inputs(answer_request(inputs)) == inputs


def test_an_image_with_pixels_carries_no_caption(picture: Picture) -> None:
    inputs = answer_request(AnswerInputs("What?", (SeenImage("", picture, "secret caption"),), ())).inputs
    assert "secret caption" not in repr(inputs)


def test_memorise_caption_and_ground_inputs_are_in_their_messages(picture: Picture) -> None:
    images = (SeenImage("I1", picture, ""), SeenImage("I2", None, "A boat."))
    text = [
        part.text if isinstance(part, TextPart) else part.picture
        for part in memorise_request(MemoriseInputs("2031-04-02", "user: hi", images)).messages[1].parts
    ]
    assert text == ["Date: 2031-04-02\n\nuser: hi", "Image I1:", picture, "Image I2 (not available), described as: A boat."]
    parts = caption_request(CaptionInputs("I1", picture)).messages[1].parts
    assert parts == (TextPart("Image I1:"), ImagePart(picture))
    parts = ground_request(GroundInputs("I1", picture, "user: look")).messages[1].parts
    assert parts == (TextPart("Context:\nuser: look"), TextPart("Image I1:"), ImagePart(picture))


def test_the_key_depends_on_content_and_not_on_the_file(picture: Picture, tmp_path: Path) -> None:
    copy = draw_lines(tmp_path / "elsewhere" / "b.png", ["Harbor Cafe"])
    other = draw_lines(tmp_path / "c.png", ["Harbor Cafe "], size=(320, 239))
    keys = [caption_request(CaptionInputs("I1", shown)).key("m") for shown in (picture, copy, other)]
    assert keys[0] == keys[1] != keys[2]
    assert caption_request(CaptionInputs("I1", picture)).key("n") != keys[0]


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[1]",
        '{"summary": "a"}',
        '{"summary": "", "textual_anchors": [], "visual_anchors": []}',
        '{"summary": "a", "textual_anchors": [1], "visual_anchors": []}',
    ],
)
def test_a_memorise_reply_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(ReplyError, match="memorise reply"):
        parse_memorise(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"target": "x"',
        '{"box": null}',
        '{"target": "x", "box": [1, 2, 3]}',
        '{"target": "x", "box": [1, 2, 3, true]}',
        '{"target": "x", "box": [1, 2, 3, 1e999]}',
    ],
)
def test_a_ground_reply_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(ReplyError, match="ground reply"):
        parse_ground(text)


def test_replies_are_read() -> None:
    assert parse_memorise('{"summary": " S. ", "textual_anchors": ["a"], "visual_anchors": []}').textual_anchors == ("a",)
    assert parse_ground('{"target": "cup", "box": [0, 10, 500, 1000]}').box == (0, 10, 500, 1000)
    assert parse_ground('{"target": "", "box": null}').box is None
