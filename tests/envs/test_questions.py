"""What a question carries to the model: the benchmark's instruction, and its images in the retrieval query."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from data.history import ImageRef, Question
from data.images import Picture
from envs.questions import query_vectors
from envs.settings import Settings, default_settings
from envs.workbench import Workbench
from models.encoders.cached import CachedJointEncoder
from models.requests import Request, TextPart
from models.store import ContentStore
from models.tasks.answer import answer_formats
from tests.memory.fakes import HashEncoder
from tests.pictures import draw_lines


def test_a_benchmarks_instruction_reaches_the_request(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = workbench.dataset.questions[:3]
    category = questions[0].category
    monkeypatch.setitem(answer_formats()["mem_gallery"], category, "One word.")  # type: ignore[arg-type]
    data = workbench.settings.data.model_copy(update={"answer_format": "mem_gallery"})
    changed = workbench.settings.model_copy(update={"data": data})
    prepared = type(workbench)(**(vars(workbench) | {"settings": changed})).prepare(questions)
    assert [item.instruction for item in prepared] == ["One word." if item.question.category == category else "" for item in prepared]

    asked: list[Request] = []
    answerer = workbench.answerer
    monkeypatch.setattr(answerer, "_generate", lambda requests: (asked.extend(requests), workbench.door.generate(requests))[1])
    monkeypatch.setattr(answerer, "_outcomes", {})
    answerer.answer(prepared, np.stack([item.available for item in prepared]))
    for item, request in zip(prepared, asked, strict=True):
        texts = [part.text for part in request.messages[1].parts if isinstance(part, TextPart)]
        assert ("One word." in texts) == bool(item.instruction)


def test_an_unknown_answer_format_is_refused() -> None:
    with pytest.raises(ValueError, match="mem_gallery"):
        default_settings(data={"answer_format": "mem_galery"})


def test_every_format_is_a_text_for_a_category(tiny_settings: Settings) -> None:
    assert tiny_settings.data.answer_format is None
    assert {"mem_gallery", "h2hmem", "worldmemarena"} <= answer_formats().keys()
    assert all(text.strip() for formats in answer_formats().values() for text in formats.values())


class PictureNamingEncoder(HashEncoder):
    """A joint encoder whose vector of an item is that of its text and its pictures' hashes."""

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        return self.encode([picture.sha256 for picture in pictures])

    def encode_joint(self, items: Sequence[tuple[str, tuple[Picture, ...]]]) -> NDArray[np.float32]:
        return self.encode([text + "".join(picture.sha256 for picture in pictures) for text, pictures in items])


def test_a_joint_encoder_sees_the_questions_pixels_and_else_its_caption(tmp_path: Path) -> None:
    picture = draw_lines(tmp_path / "a.png", ["Harbor"])
    shown = Question("q:0", "h", "Which image?", "a", "VS", images=(ImageRef("a", picture.path, "A sign."),))
    lost = Question("q:1", "h", "Which image?", "a", "VS", images=(ImageRef("b", None, "A sign."),))
    plain = HashEncoder()
    joint = CachedJointEncoder(PictureNamingEncoder(), store=ContentStore(tmp_path / "vectors.sqlite"))
    np.testing.assert_array_equal(query_vectors([shown, lost], plain), plain.encode(["Which image?\nA sign."] * 2))
    wanted = plain.encode([f"Which image?{picture.sha256}", "Which image?\nA sign."])
    np.testing.assert_array_equal(query_vectors([shown, lost], joint), wanted)
