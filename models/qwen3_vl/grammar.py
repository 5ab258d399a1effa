"""Replies that follow a JSON schema, one token at a time: a finite automaton over bytes, and which tokens it allows where.

``outlines_core`` turns the schema into a regular expression and that into an automaton. The automaton also knows how far
each state is from a complete reply, so a reply is always complete within its token limit: near the limit only tokens
that can still be closed in time are allowed. Every byte is a token of a byte-level tokenizer, so a distance in bytes is
never less than one in tokens.
"""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.errors import BackendError
from models.weights import need

DEAD = 0
_FAR = np.iinfo(np.int32).max
_WHITESPACE = r"[ \n]{0,2}"
# JSON numbers may have any length and exponent, and a model can write digits until its limit; these have at most nine
# digits before the point and six after it, which every task's numbers fit.
_INTEGER = r"(-)?(0|[1-9][0-9]{0,8})"
_NUMBER = rf"({_INTEGER})(\.[0-9]{{1,6}})?"


class ByteAutomaton:
    """The bytes of every reply that a schema allows.

    ``step``: (states, 256) int32, the next state of a state and a byte; state 0 is dead. ``distance``: (states,) int32,
    the fewest bytes from a state to a complete reply. ``start`` is the first state.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """``schema``: a JSON schema without recursion.

        Raises:
            BackendError: the schema has something that no finite automaton can follow.
        """
        need("outlines_core")
        from outlines_core import Index, Vocabulary
        from outlines_core.json_schema import INTEGER, NUMBER, build_regex_from_schema

        try:
            pattern = build_regex_from_schema(json.dumps(_with_visible_strings(schema)), _WHITESPACE)
            pattern = pattern.replace(NUMBER, _NUMBER).replace(INTEGER, _INTEGER)
            index = Index(pattern, Vocabulary(256, {bytes([byte]): [byte] for byte in range(256)}))
        except (ValueError, TypeError) as error:
            raise BackendError(f"replies cannot be held to this JSON schema ({error}): {json.dumps(schema)[:300]}") from error
        transitions = index.get_transitions()
        states = {index.get_initial_state(): 1}
        for state, edges in transitions.items():
            for other in (state, *edges.values()):
                states.setdefault(other, len(states) + 1)
        self.start = states[index.get_initial_state()]
        self.step: NDArray[np.int32] = np.zeros((len(states) + 1, 256), np.int32)
        for state, edges in transitions.items():
            for byte, other in edges.items():
                if byte < 256:  # 256 marks the end of a reply
                    self.step[states[state], byte] = states[other]
        self.distance = _distances(self.step, [states[state] for state in index.get_final_states()])

    def __len__(self) -> int:
        return len(self.step)


def _with_visible_strings(schema: Any) -> Any:
    """The schema with each string that must not be empty beginning with a visible character: blanks alone would say nothing."""
    if isinstance(schema, list):
        return [_with_visible_strings(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "string" and schema.get("minLength", 0) > 0 and not {"pattern", "format", "maxLength", "enum"} & schema.keys():
        return {"type": "string", "pattern": r'^[^"\\\x00-\x20\x7F-\xA0]([^"\\\x00-\x1F\x7F-\x9F]|\\["\\])*$'}
    return {name: _with_visible_strings(value) for name, value in schema.items()}


def _distances(step: NDArray[np.int32], finals: Sequence[int]) -> NDArray[np.int32]:
    """Fewest bytes from each state to a final one, by breadth-first search against the edges."""
    before: list[set[int]] = [set() for _ in step]
    for state, row in enumerate(step):
        for other in np.unique(row):
            before[other].add(state)
    distance = np.full(len(step), _FAR, np.int32)
    distance[finals] = 0
    queue = deque(finals)
    while queue:
        state = queue.popleft()
        for earlier in before[state] - {DEAD}:
            if distance[earlier] == _FAR:
                distance[earlier] = distance[state] + 1
                queue.append(earlier)
    distance[DEAD] = _FAR
    return distance


class TokenBytes:
    """The bytes of each token of a byte-level tokenizer; control tokens have none."""

    def __init__(self, tokenizer: Any, *, size: int) -> None:
        """``size``: length of the model's logits, which may be more than the tokenizer has tokens.

        Raises:
            BackendError: the tokenizer is not byte-level, so that not every text can be written byte by byte.
        """
        from transformers.convert_slow_tokenizer import bytes_to_unicode

        byte_of = {character: byte for byte, character in bytes_to_unicode().items()}  # type: ignore[no-untyped-call]
        control = set(tokenizer.get_added_vocab())
        vocabulary = {number: token for token, number in tokenizer.get_vocab().items() if token not in control and number < size}
        texts = {number: bytes(byte_of[c] for c in token) for number, token in vocabulary.items() if all(c in byte_of for c in token)}
        if {bytes([byte]) for byte in range(256)} - set(texts.values()):
            raise BackendError("the model's tokenizer is not byte-level BPE, so replies cannot be held to a schema: use another model")
        # Longest first, so that the tokens with a byte at position j are a prefix.
        self.size = size
        self._numbers = np.array(sorted(texts, key=lambda number: -len(texts[number])))
        lengths = np.array([len(texts[number]) for number in self._numbers])
        self._matrix = np.zeros((lengths[0], len(lengths)), np.uint8)
        for row, number in enumerate(self._numbers):
            self._matrix[: lengths[row], row] = np.frombuffer(texts[number], np.uint8)
        self._n_longer = [int((lengths > position).sum()) for position in range(lengths[0])]
        self.text = np.zeros(size, np.bool_)
        self.text[self._numbers] = True
        self.visible = np.zeros(size, np.bool_)
        self.visible[[number for number, text in texts.items() if text.strip()]] = True

    def walk(self, step: NDArray[np.int32], state: int) -> NDArray[np.int32]:
        """(size,) int32: the state that each token leads to from ``state``; dead for tokens that are not allowed."""
        reached = np.full(len(self._numbers), state, np.int32)
        for position, n in enumerate(self._n_longer):
            reached[:n] = step[reached[:n], self._matrix[position, :n]]
        states = np.zeros(self.size, np.int32)
        states[self._numbers] = reached
        return states


class Grammar:
    """The tokens of every reply that a schema allows, for one tokenizer."""

    def __init__(self, schema: Mapping[str, Any], tokens: TokenBytes) -> None:
        self._automaton = ByteAutomaton(schema)
        self.start = self._automaton.start
        self.shortest = int(self._automaton.distance[self.start])
        self._walk = lru_cache(maxsize=64)(lambda state: tokens.walk(self._automaton.step, state))

    def allowed(self, state: int, *, tokens_left: int) -> NDArray[np.bool_]:
        """(vocabulary,) bool: the tokens after which the reply can still be completed with ``tokens_left`` more."""
        reached = self._walk(state)
        allowed: NDArray[np.bool_] = self._automaton.distance[reached] <= tokens_left
        return allowed

    def next_state(self, state: int, token: int) -> int:
        """The state after a token."""
        return int(self._walk(state)[token])

    def is_complete(self, state: int) -> bool:
        """Whether the reply may end here."""
        return bool(self._automaton.distance[state] == 0)
