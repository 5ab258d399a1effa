import asyncio
import json
import logging
import time
from pathlib import Path

import pytest

from models.door import Door
from models.errors import AccessRefused, BackendError, BackendUnavailable, ContextLengthError, ReplyError, RequestRefused
from models.openai_compatible.backend import OpenAIBackend
from models.requests import Reply, Request
from tests.models.openai_compatible.doors import open_door
from tests.models.openai_compatible.support import SCHEMA, ask, openai_settings, picture
from tests.servers.processes import FaultServerProcess, fault_server


def backend(server: FaultServerProcess, **changes: object) -> OpenAIBackend:
    return OpenAIBackend(openai_settings(server.base_url, **changes))


def answers(model: OpenAIBackend, *requests: Request) -> dict[int, Reply]:
    return dict(model.stream(requests))


def kept(model: OpenAIBackend, *requests: Request) -> tuple[dict[int, Reply], BackendError]:
    """What was yielded before the error, and the error."""
    replies: dict[int, Reply] = {}
    with pytest.raises(BackendError) as caught:
        for position, reply in model.stream(requests):
            replies[position] = reply
    return replies, caught.value


def test_every_request_gets_its_own_reply(server: FaultServerProcess) -> None:
    model = backend(server)
    requests = [ask(f"question {number}") for number in range(12)]
    together = answers(model, *requests)
    assert sorted(together) == list(range(12))
    alone = [answers(model, request)[0].text for request in requests]
    assert [together[number].text for number in range(12)] == alone
    assert len(set(alone)) > 6
    assert together[3].key == requests[3].key(model.model_id)
    assert together[3].seconds > 0 and together[3].first_token_seconds is None


def test_the_servers_own_token_counts_are_taken(server: FaultServerProcess) -> None:
    # The fault server counts words: "You answer briefly." has 3, "how many words are here" 5, and it replies in 3.
    usage = answers(backend(server), ask("how many words are here"))[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.image_tokens) == (8, 3, 0)


def test_without_usage_tokens_are_counted_by_rule(server: FaultServerProcess, tmp_path: Path) -> None:
    server.script({"fault": "no_usage"})
    model = backend(server)
    request = ask("look", pictures=(picture(tmp_path / "a.png", (320, 256)),))
    reply = answers(model, request)[0]
    # 320 × 256 pixels are 10 × 8 squares of 32; "You answer briefly." is 4 WordPieces and "look" 1.
    assert (reply.usage.image_tokens, reply.usage.input_tokens) == (80, 85)
    assert reply.usage.output_tokens == model.counter.count_text(reply.text)


def test_a_count_that_differs_is_reported_once(server: FaultServerProcess, caplog: pytest.LogCaptureFixture) -> None:
    server.script({"fault": "double_usage"})
    model = backend(server)
    text = "a cat sat on the mat and looked at me " * 20
    with caplog.at_level(logging.WARNING):
        answers(model, *[ask(f"{text} {number}") for number in range(5)])
    said = [record.getMessage() for record in caplog.records if "input tokens" in record.getMessage()]
    assert len(said) == 1 and "fault-vlm" in said[0] and "qwen3_vl" in said[0]


def test_a_count_within_the_tolerance_is_not_reported(server: FaultServerProcess, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        answers(backend(server), ask("a cat sat on the mat and looked at me " * 20))
    assert not [record for record in caplog.records if "input tokens" in record.getMessage()]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_a_busy_server_is_asked_again(server: FaultServerProcess, status: int) -> None:
    server.script({"fault": "status", "status": status, "times": 2, "headers": {"retry-after": "0.05"}})
    assert answers(backend(server), ask("again"))[0].text
    assert len(server.events("received")) == 3


def test_retry_after_is_waited_for(server: FaultServerProcess) -> None:
    server.script({"fault": "status", "status": 429, "times": 1, "headers": {"retry-after": "1.2"}})
    started = time.monotonic()
    answers(backend(server), ask("wait"))
    # The SDK's own first delay is at most 0.5 s.
    assert time.monotonic() - started >= 1.2


def test_a_longer_pause_than_two_minutes_is_told_instead(server: FaultServerProcess) -> None:
    server.script({"fault": "status", "status": 429, "headers": {"retry-after": "3600"}})
    _, error = kept(backend(server), ask("wait"))
    assert isinstance(error, BackendUnavailable) and "it asks to wait 3600 s" in str(error)
    assert len(server.events("received")) == 1


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("fault", ["drop", "cut", "invalid_json", "empty_choices", "empty_content"])
def test_a_broken_reply_is_asked_for_again(server: FaultServerProcess, fault: str, streaming: bool) -> None:
    model = backend(server, streaming=streaming)
    expected = answers(model, ask("whole"))[0].text
    server.script({"fault": fault, "times": 1})
    assert answers(model, ask("whole"))[0].text == expected
    assert len(server.events("received")) == 3


@pytest.mark.parametrize("fault", ["drop", "cut", "invalid_json", "empty_choices", "empty_content"])
def test_a_reply_that_stays_broken_is_an_error_and_never_an_empty_answer(server: FaultServerProcess, fault: str) -> None:
    server.script({"fault": fault, "match": "bad"})
    replies, error = kept(backend(server, max_retries=1), ask("good"), ask("bad"))
    assert isinstance(error, BackendUnavailable)
    assert list(replies) == [0] and replies[0].text
    assert "answer request" in str(error) and server.base_url in str(error)


def test_a_silent_server_is_an_error(server: FaultServerProcess) -> None:
    server.script({"fault": "slow", "seconds": 2, "match": "slow"})
    _, error = kept(backend(server, timeout_seconds=0.3, max_retries=0), ask("slow"))
    assert isinstance(error, BackendUnavailable) and "said nothing for 0.3 s" in str(error) and "timeout_seconds" in str(error)


def test_streaming_measures_the_first_token(server: FaultServerProcess) -> None:
    whole, streamed = answers(backend(server), ask("same"))[0], answers(backend(server, streaming=True), ask("same"))[0]
    assert streamed.text == whole.text and streamed.usage == whole.usage
    assert streamed.first_token_seconds is not None and 0 < streamed.first_token_seconds <= streamed.seconds


def test_json_is_asked_for_by_schema(server: FaultServerProcess) -> None:
    reply = answers(backend(server), ask("who", schema=SCHEMA))[0]
    assert set(json.loads(reply.text)) == {"name", "age"}
    assert len(server.events("received")) == 1


def test_a_server_that_refuses_schemas_is_asked_in_words_from_then_on(server: FaultServerProcess, caplog: pytest.LogCaptureFixture) -> None:
    server.script({"fault": "refuse", "field": "response_format"})
    model = backend(server, concurrency=1)
    with caplog.at_level(logging.WARNING):
        replies = answers(model, ask("who", schema=SCHEMA), ask("whom", schema=SCHEMA))
    assert all(set(json.loads(reply.text)) == {"name", "age"} for reply in replies.values())
    # One refusal, then one plain call for each request.
    assert len(server.events("received")) == 3
    assert len([record for record in caplog.records if "response_format" in record.getMessage()]) == 1


def test_a_code_fence_around_json_is_taken_off(server: FaultServerProcess) -> None:
    server.script({"fault": "text", "text": 'Here it is:\n```json\n{"name": "Ada", "age": 36}\n```'})
    reply = answers(backend(server), ask("who", schema=SCHEMA))[0]
    assert reply.text == '{"name": "Ada", "age": 36}'


def test_a_wrong_reply_is_repaired_once(server: FaultServerProcess) -> None:
    server.script({"fault": "wrong_schema", "times": 1})
    reply = answers(backend(server), ask("who", schema=SCHEMA))[0]
    assert set(json.loads(reply.text)) == {"name", "age"}
    received = server.events("received")
    assert len(received) == 2
    assert received[1]["n_bytes"] > received[0]["n_bytes"] + 200  # the second call quotes the reply, its problem and the schema
    assert reply.usage.output_tokens > 2  # both calls are paid: {"unexpected": true} is 2 words


def test_a_reply_that_stays_wrong_is_an_error_that_quotes_it(server: FaultServerProcess) -> None:
    server.script({"fault": "wrong_schema", "match": "bad"})
    replies, error = kept(backend(server), ask("bad", schema=SCHEMA), ask("good", schema=SCHEMA))
    assert isinstance(error, ReplyError) and "unexpected" in str(error) and "repair" in str(error)
    assert list(replies) == [1]
    assert len(server.events("received")) == 3


def test_a_model_that_refuses_temperature_is_asked_without_it_and_says_so_once(
    server: FaultServerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    server.script({"fault": "refuse", "field": "temperature"})
    model = backend(server, concurrency=1)
    with caplog.at_level(logging.WARNING):
        replies = answers(model, ask("a"), ask("b"), ask("c"))
    assert len(replies) == 3 and len(server.events("received")) == 4
    said = [record.getMessage() for record in caplog.records if "temperature" in record.getMessage()]
    assert len(said) == 1 and "asked without it" in said[0]


def test_a_model_that_wants_max_completion_tokens_gets_it(server: FaultServerProcess) -> None:
    server.script({"fault": "refuse", "field": "max_tokens", "message": "Unsupported parameter: use 'max_completion_tokens' instead."})
    assert answers(backend(server), ask("a"))[0].text
    assert len(server.events("received")) == 2


def test_a_request_that_is_too_long_is_named_with_its_length(server: FaultServerProcess) -> None:
    # vLLM's words, which also name fields that could be left out or renamed.
    message = "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum context length is 100 tokens."
    server.script({"fault": "status", "status": 400, "message": message, "match": "word word"})
    request = ask("word " * 200)
    model = backend(server)
    replies, error = kept(model, request, ask("short"))
    assert isinstance(error, ContextLengthError) and list(replies) == [1]
    # 200 WordPieces of "word" and 4 of the system message.
    assert "204 of text" in str(error) and "maximum context length is 100" in str(error) and request.key(model.model_id)[:12] in str(error)
    assert len(server.events("received")) == 2  # neither retried nor asked without some field


def test_a_refused_request_names_its_pictures(server: FaultServerProcess, tmp_path: Path) -> None:
    server.script({"fault": "status", "status": 400, "message": "height:1 must be larger than factor:32", "match": "image_url"})
    request = ask("see", pictures=(picture(tmp_path / "tiny.png", (1, 1)),))
    _, error = kept(backend(server), request)
    assert isinstance(error, RequestRefused) and "tiny.png 1 × 1" in str(error) and "factor:32" in str(error)


def test_a_picture_that_changed_on_disk_is_not_sent(server: FaultServerProcess, tmp_path: Path) -> None:
    shown = picture(tmp_path / "a.png")
    picture(tmp_path / "a.png", color="red")
    replies, error = kept(backend(server), ask("see", pictures=(shown,)), ask("fine"))
    assert "changed since" in str(error) and list(replies) == [1]


def test_the_circuit_breaker_stops_after_failures_in_a_row(server: FaultServerProcess) -> None:
    server.script({"fault": "status", "status": 500, "match": "gone"})
    requests = [ask("fine 0"), ask("fine 1"), *[ask(f"gone {number}") for number in range(20)]]
    replies, error = kept(backend(server, max_retries=0, max_failures=5, concurrency=2), *requests)
    assert isinstance(error, BackendUnavailable) and "5 calls failed" in str(error) and "same command goes on" in str(error)
    assert sorted(replies) == [0, 1]
    # 2 good ones, 5 failures, and at most one more that was in flight when the fifth failed.
    assert len(server.events("received")) <= 8


def test_replies_in_flight_are_kept_when_the_breaker_opens(server: FaultServerProcess) -> None:
    server.script({"fault": "slow", "seconds": 0.6, "match": "late"}, {"fault": "status", "status": 500, "match": "gone"})
    requests = [ask("late"), *[ask(f"gone {number}") for number in range(6)]]
    replies, error = kept(backend(server, max_retries=0, max_failures=2, concurrency=2), *requests)
    assert isinstance(error, BackendUnavailable) and list(replies) == [0]
    assert len(server.events("received")) == 3


def test_single_failures_do_not_open_the_breaker(server: FaultServerProcess) -> None:
    server.script({"fault": "status", "status": 400, "match": "odd"})
    requests = [ask(f"{'odd' if number % 2 else 'even'} {number}") for number in range(8)]
    replies, error = kept(backend(server, concurrency=1, max_failures=2), *requests)
    assert type(error) is RequestRefused and "4 of 8 requests failed" in str(error)
    assert sorted(replies) == [0, 2, 4, 6]


def test_a_server_that_is_gone_says_so(tmp_path: Path) -> None:
    with fault_server(tmp_path) as server:
        url = server.base_url
    _, error = kept(OpenAIBackend(openai_settings(url, max_retries=0)), ask("anyone"))
    assert isinstance(error, BackendUnavailable) and url in str(error) and "start the server" in str(error)


def test_the_door_keeps_every_reply_that_came(server: FaultServerProcess, tmp_path: Path) -> None:
    server.script({"fault": "status", "status": 400, "match": "bad"})
    requests = [ask("one"), ask("bad"), ask("two"), ask("three")]
    door: Door = open_door(backend(server), tmp_path)
    with pytest.raises(RequestRefused):
        door.generate(requests)
    server.script()
    door.generate(requests)
    # The repaired run sends the refused request only.
    assert len(server.events("received")) == 5


def test_the_next_request_waits_until_a_reply_was_taken(server: FaultServerProcess) -> None:
    # Whoever stores replies one by one can then lose no more than the two that are on the way or in its hands.
    replies = backend(server, concurrency=2).stream([ask(str(number)) for number in range(6)])
    for n_sent in (2, 3):
        next(replies)
        deadline = time.monotonic() + 10
        while len(server.events("received")) < n_sent and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        assert len(server.events("received")) == n_sent


def test_a_stream_that_is_let_go_cancels_what_is_in_flight(server: FaultServerProcess) -> None:
    server.script({"fault": "slow", "seconds": 5, "match": "late"})
    model = backend(server, concurrency=3)
    replies = model.stream([ask("fast"), *[ask(f"late {number}") for number in range(5)]])
    assert next(replies)[0] == 0
    replies.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 3  # the late replies take 5 s
    while (left := asyncio.all_tasks(model.connection._loop)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left
    assert len(server.events("received")) <= 3


def test_the_model_id_says_what_changes_answers_and_nothing_else() -> None:
    def id_of(**changes: object) -> str:
        return OpenAIBackend(openai_settings(**({"base_url": "http://127.0.0.1:1/v1"} | changes))).model_id

    assert id_of() == "fault-vlm@1048576px"
    assert id_of(base_url="http://127.0.0.1:2/v1", concurrency=9, max_retries=7) == id_of()
    ids = {
        id_of(),
        id_of(max_image_pixels=4096),
        id_of(revision="r2"),
        id_of(extra={"seed": 1}),
        id_of(extra={"seed": 2}),
        id_of(model="b"),
    }
    assert len(ids) == 6


def test_quota_and_unknown_models_stop_at_once(server: FaultServerProcess) -> None:
    server.script({"fault": "status", "status": 404, "message": "The model does not exist"})
    _, error = kept(backend(server, concurrency=1, max_failures=10), *[ask(str(number)) for number in range(5)])
    assert isinstance(error, AccessRefused) and len(server.events("received")) == 1
