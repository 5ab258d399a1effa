"""The whole job over HTTP: a vision-language model behind `transformers serve` captions, answers training and is evaluated.

The model is tiny and untrained, so its replies say nothing. This server passes over ``response_format``, and an untrained model
writes no JSON of itself: what building asks as JSON (summaries, anchors, boxes) is answered by the server of drawn words instead, and
lies in the call cache as the model's own replies. Every caption and every answer comes from the model.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from transformers import AutoProcessor, GenerationConfig

from envs.evaluation.comparison import summarise
from envs.run_folder import LEDGER
from envs.settings import OpenAIVlm
from envs.workbench import open_workbench
from models.cache.calls import Call, CallCache
from models.cache.contents import Filter, batches
from models.errors import ReplyError
from models.ledger import Entry, read_ledger
from models.openai_compatible.backend import OpenAIBackend
from models.openai_compatible.settings import OpenAISettings
from models.requests import Reply, Request, canonical_json, content_key
from tests.models.openai_compatible.doors import open_door
from tests.models.openai_compatible.support import SCHEMA, ask, openai_settings
from tests.models.tiny_qwen import build_tiny_qwen3_vl
from tests.pictures import noise_pictures
from tests.servers.processes import fault_server
from tests.servers.transformers_serve import TransformersServer, transformers_server
from tests.vlm import needs_vlm
from tests.whole_job import METHODS, N_HISTORIES, N_QUESTIONS, cut_sample, small_settings, train_and_evaluate

pytestmark = needs_vlm
CACHE = "calls.sqlite"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen3-VL whose own settings end a reply after a dozen tokens; untrained, it would hardly ever stop."""
    folder = build_tiny_qwen3_vl(tmp_path_factory.mktemp("qwen"))
    generation = GenerationConfig.from_pretrained(folder)
    generation.update(min_new_tokens=4, exponential_decay_length_penalty=(8, 1.5))
    generation.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersServer]:
    with transformers_server(model, tmp_path_factory.mktemp("server") / "log.txt") as running:
        yield running


def settings_of(server: TransformersServer, model: Path) -> OpenAISettings:
    return openai_settings(server.base_url, model=str(model), tokenizer=str(model), streaming=True, timeout_seconds=120.0)


def answers(backend: OpenAIBackend, *requests: Request) -> list[Reply]:
    replies = dict(backend.stream(requests))
    return [replies[position] for position in range(len(requests))]


@cache
def picture_tokens(model: Path, width: int, height: int) -> int:
    """Tokens of a picture by the model's own processor, which enlarges small ones; four patches are one token."""
    return int(AutoProcessor.from_pretrained(model).image_processor.get_number_of_image_patches(height, width) // 4)


def test_the_model_sees_pictures(server: TransformersServer, model: Path, tmp_path: Path) -> None:
    backend = OpenAIBackend(settings_of(server, model))
    one, other = noise_pictures(tmp_path, 2, size=(192, 128))
    requests = [ask("What is shown?", pictures=pictures) for pictures in ((), (one,), (other,), (one, other))]
    plain, first, second, both = answers(backend, *requests)
    n = picture_tokens(model, one.width, one.height)
    assert 0 <= first.usage.input_tokens - plain.usage.input_tokens - n <= 4  # beside its own, a line break and two marks
    assert first.usage.input_tokens == second.usage.input_tokens == both.usage.input_tokens - n - 2
    assert first.text != second.text  # equal but for the pixels
    assert first.first_token_seconds is not None and 0 < first.first_token_seconds < first.seconds
    (whole,) = answers(OpenAIBackend(replace(settings_of(server, model), streaming=False)), requests[1])
    assert (whole.text.strip(), whole.usage) == (first.text.strip(), first.usage)  # the server streams a first space, else drops it


def test_what_is_no_json_is_asked_once_more_and_not_kept(server: TransformersServer, model: Path, tmp_path: Path) -> None:
    door = open_door(OpenAIBackend(settings_of(server, model)), tmp_path)
    before = server.n_answered()
    with pytest.raises(ReplyError, match="also after one repair"):
        door.generate([ask("Who am I?", schema=SCHEMA)])
    assert server.n_answered() == before + 2
    assert not stored(tmp_path / CACHE)


def test_build_train_and_evaluate_over_http(server: TransformersServer, model: Path, tmp_path: Path) -> None:
    cut_sample(tmp_path / "sample")
    backend = OpenAIBackend(settings_of(server, model))
    with fault_server(tmp_path) as words:
        drawn = OpenAIVlm(name="openai", **vars(openai_settings(words.base_url)))
        open_workbench(small_settings(tmp_path / "sample", tmp_path / "drawn", drawn))
    n_lent = lend_json_replies(tmp_path / "drawn" / CACHE, tmp_path / "cache" / CACHE, backend.model_id)
    settings = small_settings(tmp_path / "sample", tmp_path / "cache", OpenAIVlm(name="openai", **vars(settings_of(server, model))))

    before = server.n_answered()
    rows = train_and_evaluate(open_workbench(settings, folder=tmp_path / "first"), tmp_path / "first")
    summaries = summarise(rows, metric_profile=settings.reward.metric_profile, answerer=backend.model_id)
    assert [*summaries] == METHODS and len(rows) == 3 * N_QUESTIONS and all(row.answer for row in rows)
    assert summaries["all-forms"].evidence_tokens_per_question > summaries["summary-only"].evidence_tokens_per_question > 0

    paid = entries(tmp_path / "first", hit=False)
    calls = {call.key: call for call in stored(tmp_path / "cache" / CACHE)}
    n_images = sum(call.task == "ground" for call in calls.values())
    assert n_images >= N_HISTORIES and sum(entry.task == "caption" for entry in paid) == n_images
    assert sum(entry.task == "answer" for entry in paid) == len(paid) - n_images >= len({row.request_key for row in rows})
    # One request of the start-up check, and one for each entry: no call was made twice, none is missing from cache or ledger.
    assert server.n_answered() == before + 1 + len(paid)
    assert len(calls) == n_lent + len(paid) and len({entry.key for entry in paid}) == len(paid)
    assert all(calls[row.request_key].reply == row.answer for row in rows)
    for entry in paid:
        call = calls[entry.key]
        assert (entry.model, entry.input_tokens, entry.output_tokens) == (call.model_id, call.input_tokens, call.output_tokens)
        # What the server counts beyond texts and pictures is the chat template, a line break a part, two marks a picture: were a
        # picture left out, at least 64 tokens would be missing.
        parts = [part for message in json.loads(call.request)["messages"] for part in message["parts"]]
        texts, pictures = [part for part in parts if isinstance(part, str)], [part for part in parts if not isinstance(part, str)]
        by_rule = sum(map(backend.counter.count_text, texts)) + sum(
            picture_tokens(model, part["width"], part["height"]) for part in pictures
        )
        assert 0 <= call.input_tokens - by_rule - len(parts) - 2 * len(pictures) <= 40

    before = server.n_answered()
    assert train_and_evaluate(open_workbench(settings, folder=tmp_path / "second"), tmp_path / "second") == rows
    assert server.n_answered() == before + 1 and not entries(tmp_path / "second", hit=False)
    assert {call.key: call for call in stored(tmp_path / "cache" / CACHE)} == calls


def lend_json_replies(source: Path, target: Path, model_id: str) -> int:
    """Store replies that are JSON under the keys of the same requests to another model; returns how many."""
    cache = CallCache(target, mode="read_write")
    lent = []
    for call in stored(source):
        request = json.loads(call.request)
        if request["schema"] is not None:
            rendered = canonical_json(request | {"model": model_id})
            lent.append(replace(call, key=content_key(rendered), model_id=model_id, request=rendered))
    return cache.put(lent, replace=False)


def stored(path: Path) -> list[Call]:
    return [call for calls in batches(CallCache(path, mode="read_only"), only=Filter()) for call in calls]


def entries(folder: Path, *, hit: bool) -> list[Entry]:
    return [entry for entry in read_ledger(folder / LEDGER) if entry.hit == hit]
