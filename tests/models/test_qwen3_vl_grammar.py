"""Replies held to a JSON schema: whatever tokens are taken among the allowed ones, the reply is valid and complete in time."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import validate

from models.errors import BackendError
from models.qwen3_vl.chat import Chat
from models.qwen3_vl.grammar import ByteAutomaton, Grammar, TokenBytes
from models.tasks.hive import GROUND_SCHEMA, MEMORISE_SCHEMA
from models.weights import Weights
from tests.models.tiny_qwen import build_tiny_qwen3_vl
from tests.vlm import needs_vlm, pretrained

pytestmark = needs_vlm

RECORDS = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["table", "event"]},
        "rows": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "minLength": 1}, "value": {"type": ["number", "null"]}, "n": {"type": "integer"}},
                "required": ["name", "value", "n"],
                "additionalProperties": False,
            },
        },
        "sure": {"type": "boolean"},
    },
    "required": ["kind", "rows", "sure"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = build_tiny_qwen3_vl(tmp_path_factory.mktemp("qwen"))
    return Chat(Weights(pretrained(folder), model_type="qwen3_vl")).tokenizer


@pytest.fixture(scope="module")
def tokens(tokenizer: Any) -> TokenBytes:
    return TokenBytes(tokenizer, size=len(tokenizer) + 3)  # models pad their vocabulary


def random_reply(grammar: Grammar, tokenizer: Any, rng: np.random.Generator, limit: int) -> str:
    state, written = grammar.start, []
    for n_written in range(limit):
        allowed = np.flatnonzero(grammar.allowed(state, tokens_left=limit - n_written - 1))
        if not len(allowed):
            break
        written.append(int(rng.choice(allowed)))
        state = grammar.next_state(state, written[-1])
    assert grammar.is_complete(state)
    return str(tokenizer.decode(written))


@pytest.mark.parametrize("schema", [MEMORISE_SCHEMA, GROUND_SCHEMA, RECORDS])
def test_random_replies_are_valid_at_every_limit(schema: Mapping[str, Any], tokens: TokenBytes, tokenizer: Any) -> None:
    grammar, rng = Grammar(schema, tokens), np.random.default_rng(0)
    for limit in (grammar.shortest, grammar.shortest + 1, 80, 300):
        for _ in range(25):
            validate(json.loads(random_reply(grammar, tokenizer, rng, limit)), schema)


def test_the_shortest_reply() -> None:
    # {"target":"","box":null} has 24 characters.
    automaton = ByteAutomaton(GROUND_SCHEMA)
    assert automaton.distance[automaton.start] == 24
    state = automaton.start
    for byte in b'{"target":"","box":null}':
        state = automaton.step[state, byte]
    assert automaton.distance[state] == 0


def reads(automaton: ByteAutomaton, text: str) -> bool:
    state = automaton.start
    for byte in text.encode():
        state = automaton.step[state, byte]
    return bool(automaton.distance[state] == 0)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ('{"target": "a box, 3 € \\"red\\"", "box": [0, 12.5, -3, 1000]}', True),
        ('{\n "target":"x",\n "box": null\n}', True),
        ('{"target": "x", "box": [0, 1, 2]}', False),
        ('{"target": "x", "box": [0, 1, 2, 1e5]}', False),  # numbers have no exponent
        ('{"target": "x", "box": [0, 1, 2, 1234567890]}', False),  # nor more than nine digits
        ('{"target": "x\ny", "box": null}', False),  # JSON has no line break in a string
        ('{"box": null, "target": "x"}', False),
    ],
)
def test_what_the_automaton_reads(text: str, is_read: bool) -> None:
    assert reads(ByteAutomaton(GROUND_SCHEMA), text) is is_read


def test_a_string_that_must_not_be_empty_begins_visibly() -> None:
    automaton = ByteAutomaton({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]})
    assert reads(automaton, '{"a": "É t"}') and not reads(automaton, '{"a": ""}') and not reads(automaton, '{"a": " t"}')


def test_tokens_of_several_bytes_are_walked_whole(tokens: TokenBytes, tokenizer: Any) -> None:
    automaton = ByteAutomaton(GROUND_SCHEMA)
    reached = tokens.walk(automaton.step, automaton.start)
    vocabulary = tokenizer.get_vocab()
    for token in ('{"', "{", "{Ċ", '"', "a"):
        if token in vocabulary:
            expected = automaton.start
            for byte in token.replace("Ċ", "\n").encode():
                expected = automaton.step[expected, byte]
            assert reached[vocabulary[token]] == expected
    assert reached[vocabulary["<|im_end|>"]] == 0 and len(reached) == len(tokenizer) + 3 and not reached[-3:].any()


def test_schemas_that_no_finite_automaton_follows_are_refused() -> None:
    with pytest.raises(BackendError, match="cannot be held to this JSON schema"):
        ByteAutomaton({"type": "object", "properties": {"a": {"$ref": "https://example.org/other.json"}}})


def test_a_tokenizer_that_is_not_byte_level_is_refused(tmp_path: Path) -> None:
    from tests.models.tiny_qwen import build_tiny_siglip2

    tokenizer = Weights(pretrained(build_tiny_siglip2(tmp_path)), model_type="siglip").read_with(_auto_tokenizer())
    with pytest.raises(BackendError, match="not byte-level"):
        TokenBytes(tokenizer, size=len(tokenizer))


def _auto_tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer
