"""The one request type of every model call, its reply, and the protocol that each backend implements.

A request carries two views of the same thing: the rendered ``messages`` that a neural backend reads, and the
structured ``inputs`` that the embedded engine reads. ``inputs`` hold nothing that the messages do not say.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from data.images import Picture

Phase = Literal["build", "plan", "answer", "judge"]


@dataclass(frozen=True)
class TextPart:
    """A piece of text in a message."""

    text: str


@dataclass(frozen=True)
class ImagePart:
    """A picture in a message."""

    picture: Picture


@dataclass(frozen=True)
class Message:
    """One chat message: ``role`` is system, user or assistant."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[TextPart | ImagePart, ...]


@dataclass(frozen=True)
class Decoding:
    """Decoding parameters; both papers use temperature 0 and at most 512 output tokens."""

    temperature: float = 0.0
    max_output_tokens: int = 512


@dataclass(frozen=True)
class Request:
    """One model call. ``task`` names the inputs' kind; ``schema`` is the JSON schema of the reply, if it is JSON.

    ``lenient``: a reply that breaks the schema is kept and returned, because who asks repairs it; otherwise it is an error.
    """

    phase: Phase
    task: str
    messages: tuple[Message, ...]
    inputs: Any
    decoding: Decoding = field(default_factory=Decoding)
    schema: Mapping[str, Any] | None = None
    lenient: bool = False

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Every picture of every message, in order."""
        return tuple(part.picture for message in self.messages for part in message.parts if isinstance(part, ImagePart))

    def rendered(self, model_id: str) -> str:
        """The request as one model is asked it, in canonical JSON; a picture is there by its SHA-256 and its size in pixels.

        That it is lenient is a part of it: so a stored reply is known to be one that may break the schema.
        """
        messages = [
            {
                "role": message.role,
                "parts": [
                    part.text
                    if isinstance(part, TextPart)
                    else {"image": part.picture.sha256, "width": part.picture.width, "height": part.picture.height}
                    for part in message.parts
                ],
            }
            for message in self.messages
        ]
        decoding = {"temperature": self.decoding.temperature, "max_output_tokens": self.decoding.max_output_tokens}
        lenient = {"lenient": True} if self.lenient else {}
        return canonical_json({"model": model_id, "messages": messages, "decoding": decoding, "schema": self.schema, **lenient})

    def key(self, model_id: str) -> str:
        """SHA-256 (hex) of `rendered`: what the call cache is keyed by."""
        return content_key(self.rendered(model_id))


def canonical_json(value: Any) -> str:
    """JSON with sorted names and no spaces, as text that UTF-8 can hold: readable, or escaped where it has lone surrogates."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


def content_key(rendered: str) -> str:
    """SHA-256 (hex) of a rendered request."""
    return hashlib.sha256(rendered.encode()).hexdigest()


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; ``image_tokens`` are part of ``input_tokens``."""

    input_tokens: int
    output_tokens: int
    image_tokens: int


@dataclass(frozen=True)
class Reply:
    """What came back for one request.

    ``hit`` says that it was not paid for: it came from the call cache or shares an equal request's call. ``seconds``
    are those of the call when it was made; ``first_token_seconds`` is None where the backend does not stream.
    """

    key: str
    text: str
    usage: Usage
    seconds: float
    hit: bool = False
    first_token_seconds: float | None = None


class TokenCounter(Protocol):
    """How a backend counts tokens."""

    def count_text(self, text: str) -> int:
        """Tokens of ``text``, without special tokens."""

    def count_image(self, width: int, height: int) -> int:
        """Tokens of a picture of that many pixels."""


class Backend(Protocol):
    """A vision-language model, or the embedded engine, behind the call cache."""

    @property
    def model_id(self) -> str:
        """Names the model and everything that changes its answers; part of every cache key."""

    @property
    def counter(self) -> TokenCounter:
        """The backend's own token rules."""

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer a batch, and yield each reply with its request's position as it arrives, in any order.

        Raises:
            models.errors.BackendError: a reply could not be had; those yielded before stay valid. Nothing is ever
                turned into an empty answer.
        """
