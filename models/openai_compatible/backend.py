"""`OpenAIBackend`: any OpenAI-compatible server as a `Backend`, asynchronous inside and synchronous outside."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from openai import APIError, APIStatusError

from data.errors import ImageError
from models.errors import ReplyError, RequestRefused
from models.openai_compatible.check import check_server
from models.openai_compatible.completion import Completion, complete
from models.openai_compatible.connection import Connection
from models.openai_compatible.counting import RuleCounter, image_detail
from models.openai_compatible.dialect import Dialect
from models.openai_compatible.failures import explain
from models.openai_compatible.rendering import ChatMessage, chat_messages, texts
from models.openai_compatible.settings import OpenAISettings
from models.openai_compatible.structured import ask_again, ask_in_words, find_json
from models.requests import Reply, Request, TokenCounter, Usage, canonical_json

logger = logging.getLogger(__name__)

_TOLERATED_SHARE = 0.1
_TEMPLATE_TOKENS = 16
"""What a chat template may add to a message before the server's count is said to differ from the rule."""


@dataclass(frozen=True)
class _Asked:
    """One request as it is sent: its name in messages, its rendering, and its picture tokens by rule."""

    name: str
    request: Request
    messages: list[ChatMessage]
    image_tokens: int


class OpenAIBackend:
    """Answers requests at an OpenAI-compatible server; the API key stays in the client and is shown nowhere."""

    def __init__(self, settings: OpenAISettings) -> None:
        """Open nothing yet: `check` and `stream` connect.

        Raises:
            BackendError: an unknown tokenizer or image rule.
            AccessRefused: the key's environment variable is not set.
        """
        self.settings = settings
        self.connection = Connection(settings)
        self._counter = RuleCounter(settings.tokenizer, image_tokens=settings.image_tokens, max_image_pixels=settings.max_image_pixels)
        self._dialect = Dialect(settings.model, streaming=settings.streaming, extra=settings.extra)
        self._said_difference = False

    def __repr__(self) -> str:
        """Name server and model."""
        return f"OpenAIBackend({self.settings.base_url!r}, model_id={self.model_id!r})"

    @property
    def model_id(self) -> str:
        """The model's name, the picture limit, and the revision and extra fields where they are set.

        The server's address is not part of it: replies paid for at one address are found again when the model moves.
        """
        settings = self.settings
        marks = [f"{settings.max_image_pixels}px", *([settings.revision] if settings.revision else [])]
        if settings.extra:
            marks.append("extra-" + hashlib.sha256(canonical_json(dict(settings.extra)).encode()).hexdigest()[:8])
        return f"{settings.model}@{','.join(marks)}"

    @property
    def counter(self) -> TokenCounter:
        """The token rules named in the settings."""
        return self._counter

    def check(self, *, n_images: int) -> None:
        """Ask the server once before a run, and name what is wrong.

        Args:
            n_images: The most pictures that one request of the run can hold.

        Raises:
            BackendError: as `models.openai_compatible.check.check_server` says.
        """
        check = partial(check_server, settings=self.settings, dialect=self._dialect, n_images=n_images, secret=self.connection.secret)
        self.connection.run(lambda: check(self.connection.client))

    def close(self) -> None:
        """Stop the event loop; called by itself when the backend is let go."""
        self.connection.close()

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Ask ``concurrency`` requests at a time and yield each reply with its request's position as it arrives.

        Raises:
            BackendUnavailable: the server is gone or lets nobody in, or ``max_failures`` calls failed in a row.
            ContextLengthError: a request is longer than the model reads.
            RequestRefused: the server refuses a request, or a picture of it cannot be sent.
            ReplyError: a reply that its schema refuses, twice.
            BackendError: several kinds of these. Every reply that came was yielded before.
        """
        return self.connection.stream([partial(self._answer, request) for request in requests])

    async def _answer(self, request: Request) -> Reply:
        asked = await asyncio.to_thread(self._render, request)
        started = time.perf_counter()
        if request.schema is None:
            first = await self._complete(asked, asked.messages)
            return self._reply(asked, [first], first.text, started)
        first = await self._complete(asked, asked.messages)
        text, problem = find_json(first.text, request.schema)
        if problem is None or request.lenient:
            return self._reply(asked, [first], text, started)
        logger.info("%s: the reply %s; asking once more", asked.name, problem)
        second = await self._complete(asked, ask_again(asked.messages, first.text, _cut_note(first) + problem, request.schema))
        text, problem = find_json(second.text, request.schema)
        if problem is not None:
            raise ReplyError(
                f"{asked.name}: the reply {_cut_note(second)}{problem}, also after one repair: {second.text[:300]!r}; use a model that "
                "follows the schema, or a server that enforces it"
            )
        return self._reply(asked, [first, second], text, started)

    def _render(self, request: Request) -> _Asked:
        settings = self.settings
        name = f"{request.task} request {request.key(self.model_id)[:12]}"
        image_tokens = sum(self._counter.count_image(picture.width, picture.height) for picture in request.pictures)
        try:
            messages = chat_messages(request, max_pixels=settings.max_image_pixels, detail=image_detail(settings.image_tokens))
        except ImageError as error:
            raise RequestRefused(f"{name}: {error}") from error
        return _Asked(name, request, messages, image_tokens)

    async def _complete(self, asked: _Asked, messages: list[ChatMessage]) -> Completion:
        """Ask until the server takes the request as it is put, leaving out what it refuses."""
        schema = asked.request.schema
        while True:
            plain = schema is not None and not self._dialect.takes_schema(schema)
            sent = ask_in_words(messages, schema) if schema is not None and plain else messages
            body = self._dialect.body(sent, asked.request.decoding, schema)
            try:
                completion = await self.connection.retry_body(partial(self._once, body, asked.name), asked=asked.name)
            except APIError as error:
                if isinstance(error, APIStatusError) and self._dialect.learn(error, body):
                    continue
                raise explain(
                    error, asked=asked.name, length=self._length(asked, sent), server=self.settings, secret=self.connection.secret
                ) from error
            return self._counted(completion, asked, sent)

    async def _once(self, body: dict[str, Any], name: str) -> Completion:
        return await complete(self.connection.client, body, streaming=self.settings.streaming, asked=name)

    def _length(self, asked: _Asked, sent: list[ChatMessage]) -> str:
        n_text = sum(map(self._counter.count_text, texts(sent)))
        pictures = [f"{picture.path.name} {picture.width} × {picture.height}" for picture in asked.request.pictures]
        what = f"about {n_text + asked.image_tokens} tokens by rule, {n_text} of text and {asked.image_tokens} of {len(pictures)} pictures"
        shown = f" ({', '.join(pictures[:5])}{', …' if len(pictures) > 5 else ''})" if pictures else ""
        return f"{what}{shown}, and up to {asked.request.decoding.max_output_tokens} for the reply"

    def _counted(self, completion: Completion, asked: _Asked, sent: list[ChatMessage]) -> Completion:
        """Fill in the tokens that the server does not report, by rule; say once when it reports far more or less."""
        by_rule = sum(map(self._counter.count_text, texts(sent))) + asked.image_tokens
        if completion.input_tokens is None or completion.output_tokens is None:
            n_output = self._counter.count_text(completion.text)
            return Completion(completion.text, completion.is_cut, by_rule, n_output, completion.first_token_seconds)
        tolerated = _TOLERATED_SHARE * by_rule + _TEMPLATE_TOKENS * len(sent)
        if not self._said_difference and abs(completion.input_tokens - by_rule) > tolerated:
            self._said_difference = True
            logger.warning(
                "%s counts %d input tokens for a request that the rules (tokenizer=%s, image_tokens=%s) count as %d: evidence is counted "
                "by the rules, whole calls by the server",
                self.settings.model, completion.input_tokens, self.settings.tokenizer, self.settings.image_tokens, by_rule,
            )  # fmt: skip
        return completion

    def _reply(self, asked: _Asked, completions: list[Completion], text: str, started: float) -> Reply:
        n_input = sum(completion.input_tokens or 0 for completion in completions)
        n_output = sum(completion.output_tokens or 0 for completion in completions)
        n_image = min(asked.image_tokens * len(completions), n_input)
        return Reply(
            key=asked.request.key(self.model_id),
            text=text,
            usage=Usage(n_input, n_output, n_image),
            seconds=time.perf_counter() - started,
            first_token_seconds=completions[0].first_token_seconds,
        )


def _cut_note(completion: Completion) -> str:
    return "was cut off at the output limit and " if completion.is_cut else ""
