"""The engine as a backend: dispatch, usage, keys and model id."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from data.images import Picture
from models.embedded.engine import EmbeddedEngine
from models.errors import BackendError
from models.requests import Message, Request, TextPart
from models.store import ContentStore
from models.tasks.answer import AnswerInputs, ShownMemory, ShownPicture, ShownText, answer_request
from tests.pictures import draw_lines


class _Words:
    def count_text(self, text: str) -> int:
        return len(text.split())

    def count_image(self, width: int, height: int) -> int:
        return width * height // 100


class _Look:
    def __init__(self, name: str) -> None:
        self.id = name

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        return np.ones((len(pictures), 1), np.float32)


def _engine(look: str = "look") -> EmbeddedEngine:
    return EmbeddedEngine(ContentStore(None), image_encoder=_Look(look), counter=_Words())


def test_a_batch_is_answered_in_order_with_its_usage(tmp_path: Path) -> None:
    picture = draw_lines(tmp_path / "a.png", ["TIDES", "High water: 4.1 m"], size=(200, 100))
    seen = ShownMemory(1, "2031-05-01", (ShownText("raw", "user: My kayak is red."), ShownPicture("image", "K1", picture)))
    requests = [
        answer_request(AnswerInputs(text, (), (seen,))) for text in ("What is the high water on the tides picture?", "Is my kayak red?")
    ]
    engine = _engine()
    positions, replies = zip(*engine.stream(requests), strict=True)
    assert positions == (0, 1)
    assert [reply.text for reply in replies] == ["4.1 m", "Yes."]
    assert [reply.key for reply in replies] == [request.key(engine.model_id) for request in requests]
    words = sum(len(part.text.split()) for message in requests[0].messages for part in message.parts if isinstance(part, TextPart))
    # a picture of 200 × 100 pixels counts 200 tokens here; "4.1 m" has two words
    assert replies[0].usage.image_tokens == 200
    assert replies[0].usage.input_tokens == words + 200
    assert replies[0].usage.output_tokens == 2
    assert not any(reply.hit for reply in replies)


def test_an_unknown_task_is_refused_with_what_exists() -> None:
    request = Request("judge", "sing", (Message("user", (TextPart("?"),)),), None)
    with pytest.raises(BackendError, match="no task sing; it has answer, caption, describe, extract, ground"):
        next(_engine().stream([request]))


def test_the_model_id_names_the_encoder_and_stays_the_same() -> None:
    assert _engine("look").model_id == _engine("look").model_id != _engine("another").model_id
    assert _engine().model_id.startswith("embedded-")
