"""The one request type of every model call, its reply, and the protocol that each backend implements.

A request carries two views of the same thing: the rendered ``messages`` that a neural backend reads, and the
structured ``inputs`` that the embedded engine reads. ``inputs`` hold nothing that the messages do not say.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
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
    """One model call. ``task`` names the inputs' kind; ``schema`` is the JSON schema of the reply, if it is JSON."""

    phase: Phase
    task: str
    messages: tuple[Message, ...]
    inputs: Any
    decoding: Decoding = field(default_factory=Decoding)
    schema: Mapping[str, Any] | None = None

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Every picture of every message, in order."""
        return tuple(part.picture for message in self.messages for part in message.parts if isinstance(part, ImagePart))

    def key(self, model_id: str) -> str:
        """SHA-256 (hex) of the rendered request for one model: what the call cache is keyed by."""
        rendered = [
            [
                message.role,
                [
                    part.text
                    if isinstance(part, TextPart)
                    else {"image": part.picture.sha256, "size": [part.picture.width, part.picture.height]}
                    for part in message.parts
                ],
            ]
            for message in self.messages
        ]
        decoding = [self.decoding.temperature, self.decoding.max_output_tokens]
        content = json.dumps([model_id, rendered, decoding, self.schema], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; ``image_tokens`` are part of ``input_tokens``."""

    input_tokens: int
    output_tokens: int
    image_tokens: int


@dataclass(frozen=True)
class Reply:
    """What came back for one request. ``hit`` says that it came from the call cache."""

    key: str
    text: str
    usage: Usage
    seconds: float
    hit: bool = False


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

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer a batch, in order.

        Raises:
            models.errors.BackendError: no reply could be had; nothing is ever turned into an empty answer.
        """
