from collections.abc import Sequence
from pathlib import Path

import pytest

from models.door import Door
from models.errors import BackendError
from models.requests import Reply, Request, TokenCounter, Usage
from models.store import ContentStore
from models.tasks import AnswerInputs, answer_request
from models.tokens import smart_resize_tokens


class WordCounter:
    def count_text(self, text: str) -> int:
        return len(text.split())

    def count_image(self, width: int, height: int) -> int:
        return smart_resize_tokens(width, height)


class Shouting:
    """Replies with the question in capitals, and records what it was asked."""

    model_id = "shouting-1"
    counter: TokenCounter = WordCounter()

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_broken = False

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        if self.is_broken:
            raise BackendError("the model is gone; start it again")
        self.asked += [request.inputs.question for request in requests]
        return [Reply(request.key(self.model_id), request.inputs.question.upper(), Usage(3, 1, 0), 0.5) for request in requests]


def ask(question: str) -> Request:
    return answer_request(AnswerInputs(question, (), ()))


def test_replies_come_in_order_and_equal_requests_share_a_call() -> None:
    backend = Shouting()
    replies = Door(backend, store=ContentStore(None)).generate([ask("b"), ask("a"), ask("b")])
    assert [reply.text for reply in replies] == ["B", "A", "B"]
    assert backend.asked == ["b", "a"]


def test_a_second_process_pays_nothing(tmp_path: Path) -> None:
    first = Door(Shouting(), store=ContentStore(tmp_path / "s.sqlite")).generate([ask("a")])[0]
    backend = Shouting()
    door = Door(backend, store=ContentStore(tmp_path / "s.sqlite"))
    again = door.generate([ask("a"), ask("new")])
    assert backend.asked == ["new"]
    assert again[0].hit and not again[1].hit
    assert (again[0].key, again[0].text, again[0].usage, again[0].seconds) == (first.key, first.text, first.usage, first.seconds)
    assert (door.n_hits, door.n_calls) == (1, 1)


def test_another_model_is_another_key(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "s.sqlite")
    Door(Shouting(), store=store).generate([ask("a")])
    other = Shouting()
    other.model_id = "shouting-2"  # type: ignore[misc]
    Door(other, store=store).generate([ask("a")])
    assert other.asked == ["a"]


def test_a_failed_call_raises_and_stores_nothing() -> None:
    backend = Shouting()
    door = Door(backend, store=ContentStore(None))
    backend.is_broken = True
    with pytest.raises(BackendError, match="start it again"):
        door.generate([ask("a")])
    backend.is_broken = False
    assert door.generate([ask("a")])[0].text == "A"
