import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from models.cache.calls import CallCache, Mode
from models.door import Door
from models.errors import BackendError, CacheMissError, ReplyError
from models.ledger import Ledger, read_ledger
from models.requests import Decoding, Message, Reply, Request, TextPart, TokenCounter, Usage
from models.tasks.answer import AnswerInputs, answer_request
from tests.models.calls import WordCounter


def shout(request: Request) -> str:
    assert isinstance(request.inputs, AnswerInputs)
    return request.inputs.question.upper()


class Shouting:
    """Replies with the question in capitals, the last request first, and records what it was asked."""

    counter: TokenCounter = WordCounter()

    def __init__(self, reply: Callable[[Request], str] = shout, *, model_id: str = "shouting-1") -> None:
        self.model_id = model_id
        self.asked: list[str] = []
        self._reply = reply

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        for position, request in reversed([*enumerate(requests)]):
            self.asked.append(request.inputs.question)
            yield position, Reply("", self._reply(request), Usage(3, 1, 0), 0.5, first_token_seconds=0.25)


def ask(question: str) -> Request:
    return answer_request(AnswerInputs(question, (), ()))


def ask_json(question: str) -> Request:
    return replace(ask(question), schema={"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}})


def door(folder: Path, backend: Shouting, mode: Mode = "read_write", ledger: Ledger | None = None) -> Door:
    return Door(backend, cache=CallCache(folder / "c.sqlite", mode=mode), ledger=ledger)


def test_replies_come_in_order_and_equal_requests_share_a_call(tmp_path: Path) -> None:
    backend = Shouting()
    replies = door(tmp_path, backend).generate([ask("b"), ask("a"), ask("b")])
    assert [reply.text for reply in replies] == ["B", "A", "B"]
    assert [reply.hit for reply in replies] == [False, False, True]
    assert [reply.key for reply in replies] == [ask(question).key("shouting-1") for question in "bab"]
    assert backend.asked == ["a", "b"]


def test_a_second_process_pays_nothing(tmp_path: Path) -> None:
    first = door(tmp_path, Shouting()).generate([ask("a")])[0]
    backend = Shouting()
    again = door(tmp_path, backend).generate([ask("a"), ask("new")])
    assert backend.asked == ["new"]
    assert again[0] == replace(first, hit=True)
    assert first.first_token_seconds == 0.25
    assert not again[1].hit


@pytest.mark.parametrize(
    "other",
    [
        ask("b"),
        replace(ask("a"), decoding=Decoding(temperature=0.5)),
        replace(ask("a"), schema={"type": "string"}),
        replace(ask("a"), messages=(Message("user", (TextPart("a"),)),)),
    ],
    ids=["question", "decoding", "schema", "messages"],
)
def test_whatever_changes_the_answer_changes_the_key(other: Request) -> None:
    assert other.key("m") != ask("a").key("m") != ask("a").key("n")


def test_a_key_holds_any_text() -> None:
    assert ask("\ud800").key("m") != ask("\ud801").key("m")  # lone surrogates, which UTF-8 has no bytes for
    assert "é" in ask("é").rendered("m")


def test_what_was_yielded_before_a_failure_is_kept(tmp_path: Path) -> None:
    def fail(request: Request) -> str:
        if request.inputs.question == "a":
            raise BackendError("the model is gone; start it again")
        return shout(request)

    with pytest.raises(BackendError, match="start it again"):
        door(tmp_path, Shouting(fail)).generate([ask("a"), ask("b"), ask("c")])
    backend = Shouting()
    assert [reply.text for reply in door(tmp_path, backend).generate([ask("a"), ask("b"), ask("c")])] == ["A", "B", "C"]
    assert backend.asked == ["a"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ('{"x": NaN}', "NaN is no JSON number"),
        ("[" * 100_000, "is not JSON"),
        ('{"x": "1"}', r"breaks the schema at \$\.x: '1' is not of type 'integer'"),
        ("", "is not JSON"),
    ],
    ids=["cut", "NaN", "deep", "type", "empty"],
)
def test_a_reply_that_breaks_its_schema_is_named_and_never_stored(tmp_path: Path, text: str, problem: str) -> None:
    backend = Shouting(lambda request: text if request.inputs.question == "bad" else '{"x": 1}')
    with pytest.raises(ReplyError, match=f"1 of 2 replies of shouting-1(.|\n)*answer 'No memory shown. Question: bad'(.|\n)*{problem}"):
        door(tmp_path, backend).generate([ask_json("good"), ask_json("bad")])
    healthy = Shouting(lambda request: '{"x": 2}')
    replies = door(tmp_path, healthy).generate([ask_json("good"), ask_json("bad")])
    assert [reply.text for reply in replies] == ['{"x": 1}', '{"x": 2}']


def test_a_lenient_request_gets_and_keeps_a_reply_that_breaks_its_schema(tmp_path: Path) -> None:
    backend = Shouting(lambda request: "no JSON")
    request = replace(ask_json("a"), lenient=True)
    assert request.key("m") != ask_json("a").key("m")  # who must have JSON is never given what was stored for who need not
    replies = [door(tmp_path, backend).generate([request])[0] for _ in range(2)]
    assert [(reply.text, reply.hit) for reply in replies] == [("no JSON", False), ("no JSON", True)]


def test_characters_that_databases_do_not_hold_are_replaced_at_once(tmp_path: Path) -> None:
    backend = Shouting(lambda request: "a\0b\ud800c")
    first, again = (door(tmp_path, backend).generate([ask("x")])[0] for _ in range(2))
    assert first.text == again.text == "a\ufffdb\ufffdc"
    assert again.hit


def test_read_only_names_what_is_missing(tmp_path: Path) -> None:
    door(tmp_path, Shouting()).generate([ask("a")])
    backend = Shouting()
    reader = door(tmp_path, backend, "read_only")
    assert reader.generate([ask("a")])[0].text == "A"
    requests = [ask(f"{'very ' * 40}long question {number}?") for number in range(7)]
    with pytest.raises(CacheMissError) as error:
        reader.generate([ask("a"), *requests])
    message = str(error.value)
    assert "does not hold 7 of the requests to shouting-1" in message
    assert "answer 'No memory shown. Question: very very" in message and "long question 4?'" in message
    assert f"(key {requests[0].key('shouting-1')})" in message
    assert "and 2 more" in message and "question 5?" not in message
    assert backend.asked == []


def test_refresh_asks_each_request_again_once_and_replaces(tmp_path: Path) -> None:
    door(tmp_path, Shouting()).generate([ask("a"), ask("b")])
    backend = Shouting(lambda request: "new")
    refreshing = door(tmp_path, backend, "refresh")
    assert [refreshing.generate([ask("a")])[0].hit for _ in range(2)] == [False, True]
    assert backend.asked == ["a"]
    assert [reply.text for reply in door(tmp_path, Shouting()).generate([ask("a"), ask("b")])] == ["new", "B"]


def test_a_reply_that_another_process_stored_first_is_the_one_used(tmp_path: Path) -> None:
    def slow(request: Request) -> str:
        door(tmp_path, Shouting(lambda request: "the other's")).generate([request])
        return "mine"

    reply = door(tmp_path, Shouting(slow)).generate([ask("a")])[0]
    assert (reply.text, reply.hit) == ("the other's", False)


@pytest.mark.parametrize("positions", [(0, 0), (0, 2), (0, -1)], ids=["twice", "beyond", "negative"])
def test_a_backend_that_answers_what_it_was_not_asked_is_an_error(tmp_path: Path, positions: tuple[int, int]) -> None:
    class Confused(Shouting):
        def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
            return iter([(position, Reply("", "x", Usage(1, 1, 0), 0.1)) for position in positions])

    with pytest.raises(BackendError, match=f"answered request {positions[1]} of 2 unasked or twice"):
        door(tmp_path, Confused()).generate([ask("a"), ask("b")])


def test_a_backend_that_leaves_requests_out_is_an_error(tmp_path: Path) -> None:
    class Lazy(Shouting):
        def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
            return iter([])

    with pytest.raises(BackendError, match="left 1 of 1 requests unanswered"):
        door(tmp_path, Lazy()).generate([ask("a")])


class Waiting(Shouting):
    """Answers when it is told to."""

    def __init__(self, reply: Callable[[Request], str] = shout) -> None:
        super().__init__(reply)
        self.was_asked = threading.Event()
        self.may_answer = threading.Event()

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        self.was_asked.set()
        assert self.may_answer.wait(10)
        yield from super().stream(requests)


def in_threads(shared: Door, backend: Waiting, first: Sequence[Request], second: Sequence[Request]) -> list[list[Reply] | Exception]:
    """``second`` is asked while ``first`` is in flight; what each came to."""
    results: list[list[Reply] | Exception] = [[], []]

    def run(place: int, requests: Sequence[Request]) -> None:
        try:
            results[place] = shared.generate(requests)
        except BackendError as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=(place, requests)) for place, requests in enumerate((first, second))]
    threads[0].start()
    assert backend.was_asked.wait(10)
    threads[1].start()
    threads[1].join(0.2)  # time to reach the call in flight
    assert threads[1].is_alive()
    backend.may_answer.set()
    for thread in threads:
        thread.join(10)
    return results


def test_threads_share_a_call_in_flight(tmp_path: Path) -> None:
    backend = Waiting()
    ledger = Ledger(tmp_path / "ledger.jsonl", run="r")
    shared = door(tmp_path, backend, ledger=ledger)
    first, second = in_threads(shared, backend, [ask("a"), ask("b")], [ask("b"), ask("c")])
    assert isinstance(first, list) and isinstance(second, list)
    assert [(reply.text, reply.hit) for reply in (*first, *second)] == [("A", False), ("B", False), ("B", True), ("C", False)]
    assert sorted(backend.asked) == ["a", "b", "c"]
    assert sorted(entry.hit for entry in read_ledger(tmp_path / "ledger.jsonl")) == [False, False, False, True]


def test_a_call_that_lands_while_another_thread_looks_it_up_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Shouting()
    shared = door(tmp_path, backend)
    get = CallCache.get

    def late(cache: CallCache, keys: Sequence[str]) -> dict[str, Reply]:
        found = get(cache, keys)
        monkeypatch.setattr(CallCache, "get", get)
        shared.generate([ask("a")])  # what another thread does between the look-up and the claim
        return found

    monkeypatch.setattr(CallCache, "get", late)
    assert shared.generate([ask("a")])[0].hit
    assert backend.asked == ["a"]


def test_a_call_in_flight_that_fails_fails_for_all_who_share_it_and_can_be_asked_again(tmp_path: Path) -> None:
    answers: Iterator[BackendError | str] = iter([BackendError("gone"), "better"])

    def reply(request: Request) -> str:
        answer = next(answers)
        if isinstance(answer, BackendError):
            raise answer
        return answer

    backend = Waiting(reply)
    shared = door(tmp_path, backend)
    assert [str(result) for result in in_threads(shared, backend, [ask("a")], [ask("a")])] == ["gone", "gone"]
    assert shared.generate([ask("a")])[0].text == "better"


def test_the_ledger_has_one_entry_a_call(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", run="run 1")
    metered = door(tmp_path, Shouting(), ledger=ledger)
    metered.generate([ask("a"), ask("a")])
    metered.generate([ask("a"), replace(ask("b"), phase="judge", task="judge")])
    with pytest.raises(ReplyError):
        metered.generate([ask_json("bad")])
    entries = list(read_ledger(tmp_path / "ledger.jsonl"))
    assert [(entry.phase, entry.task, entry.hit) for entry in entries] == [
        ("answer", "answer", False),
        ("answer", "answer", True),
        ("judge", "judge", False),
        ("answer", "answer", True),
        ("answer", "answer", False),  # a reply that breaks its schema was paid for
    ]
    one = entries[0]
    assert (one.run, one.model, one.key) == ("run 1", "shouting-1", ask("a").key("shouting-1"))
    assert (one.input_tokens, one.output_tokens, one.image_tokens, one.seconds, one.first_token_seconds) == (3, 1, 0, 0.5, 0.25)
