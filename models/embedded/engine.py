"""`EmbeddedEngine`: a backend without a neural language model, for machines without a GPU or a server.

It is deterministic and CPU-only. It reads pixels by OCR, text by rules, and answers from the evidence of the request
and nothing else. It reads a request's ``inputs``, which hold nothing that the messages do not say.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from models.embedded.answer import Answerer
from models.embedded.caption import caption
from models.embedded.describe import describe
from models.embedded.extract import extract
from models.embedded.ground import ground
from models.embedded.instantiate import instantiate
from models.embedded.judge import judge, outcome
from models.embedded.memorise import memorise
from models.embedded.ocr import TextReader
from models.embedded.pictures import PictureMatcher
from models.embedded.plan import plan
from models.embedded.steps import answer_from_tables, with_all_memories
from models.embedded.table import table
from models.embedded.window import read_window
from models.encoders.types import ImageEncoder
from models.errors import BackendError
from models.requests import Reply, Request, TextPart, TokenCounter, Usage
from models.store import ContentStore
from models.tasks.answer import AnswerInputs


class EmbeddedEngine:
    """A `Backend` for building both memories (memorise, caption, ground; extract, table, describe), answering and judging.

    Recognised text and picture vectors are kept in ``store`` by picture content, so no picture is read twice.
    """

    def __init__(self, store: ContentStore, *, image_encoder: ImageEncoder, counter: TokenCounter) -> None:
        self._counter = counter
        self._image_encoder_id = image_encoder.id
        self._reader = TextReader(store)
        self._answerer = Answerer(self._reader, pictures=PictureMatcher(image_encoder, reader=self._reader))
        self._count = lru_cache(maxsize=100_000)(counter.count_text)
        self._tasks: dict[str, Callable[[Any], str]] = {
            "memorise": lambda inputs: memorise(inputs, reader=self._reader, count=self._count),
            "caption": lambda inputs: caption(inputs, reader=self._reader),
            "ground": lambda inputs: ground(inputs, reader=self._reader),
            "extract": lambda inputs: extract(inputs, reader=self._reader),
            "table": table,
            "describe": describe,
            "judge": judge,
            "outcome": outcome,
            "plan": plan,
            "instantiate": instantiate,
            "answer": self._answer,
        }

    @cached_property
    def model_id(self) -> str:
        """``embedded-`` and a hash of the engine's source, its recogniser, encoders and word lists."""
        digest = hashlib.sha256()
        for path in sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in {".py", ".toml"}):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        parts = [self._reader.version, self._image_encoder_id, version("nltk"), version("lemminflect")]
        digest.update("\n".join(parts).encode())
        return f"embedded-{digest.hexdigest()[:16]}"

    @property
    def counter(self) -> TokenCounter:
        """The token rules given at construction."""
        return self._counter

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer a batch one by one, in order.

        Raises:
            BackendError: a request's task is none of the engine's; then none of the batch is answered.
        """
        unknown = sorted({request.task for request in requests if request.task not in self._tasks})
        if unknown:
            raise BackendError(
                f"the embedded engine has no task {', '.join(unknown)}; it has {', '.join(sorted(self._tasks))}: "
                "use another vlm for the rest"
            )
        for position, request in enumerate(requests):
            yield position, self._reply(request)

    def _answer(self, inputs: AnswerInputs) -> str:
        from_tables = answer_from_tables(inputs) if inputs.steps else ""
        window = read_window(with_all_memories(inputs), count_text=self._count, counter=self._counter)
        return from_tables or self._answerer.answer(window)

    def _reply(self, request: Request) -> Reply:
        started = time.perf_counter()
        text = self._tasks[request.task](request.inputs)
        seconds = time.perf_counter() - started
        texts = sum(self._count(part.text) for message in request.messages for part in message.parts if isinstance(part, TextPart))
        images = sum(self._counter.count_image(picture.width, picture.height) for picture in request.pictures)
        return Reply(request.key(self.model_id), text, Usage(texts + images, self._count(text), images), seconds)
