"""Calls and a backend for the tests of the call cache; run as a program it is one of several writers.

``python -m tests.models.calls WHERE NAME N_OWN N_SHARED`` asks N_OWN requests of its own and N_SHARED that every
writer asks, in batches and in its own order, and prints the name of each request whose reply is committed.
"""

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from models.cache.calls import Call, CallCache
from models.door import Door
from models.requests import Message, Reply, Request, TextPart, TokenCounter, Usage, content_key

MODEL = "echo-1"
N_AT_ONCE = 16


class WordCounter:
    def count_text(self, text: str) -> int:
        return len(text.split())

    def count_image(self, width: int, height: int) -> int:
        return width * height


class Echo:
    """Answers at once, with the request's inputs."""

    model_id = MODEL
    counter: TokenCounter = WordCounter()

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        for position, request in enumerate(requests):
            yield position, Reply("", str(request.inputs), Usage(7, 1, 4), 0.5)


def request(name: str, *, n_characters: int = 0) -> Request:
    text = TextPart(f"Say {name}. " + "evidence " * (n_characters // 9))
    return Request("answer", "answer", (Message("user", (text,)),), name)


def call(name: str, *, model_id: str = MODEL, task: str = "answer", created: float = 1000.0, reply: str | None = None) -> Call:
    rendered = request(name).rendered(model_id)
    return Call(content_key(rendered), model_id, "answer", task, name if reply is None else reply, 7, 1, 4, 0.5, None, created, rendered)


def write(where: str, name: str, n_own: int, n_shared: int) -> None:
    door = Door(Echo(), cache=CallCache(where, mode="read_write"), ledger=None)
    names = [f"{name}/{number}" for number in range(n_own)] + [f"shared/{number}" for number in range(n_shared)]
    order = np.random.default_rng(len(name)).permutation(len(names))
    for start in range(0, len(names), N_AT_ONCE):
        asked = [names[place] for place in order[start : start + N_AT_ONCE]]
        replies = door.generate([request(name) for name in asked])
        assert [reply.text for reply in replies] == asked
        print(*asked, sep="\n", flush=True)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
