"""From a request to the messages of a chat completion."""

from typing import Any

from models.openai_compatible.images import data_url
from models.requests import Message, Request, TextPart

ChatMessage = dict[str, Any]
"""``role`` and ``content``: a string, or a list of text and image parts."""


def chat_messages(request: Request, *, max_pixels: int, detail: str | None) -> list[ChatMessage]:
    """Render a request's messages; a message without pictures is one string, which the oldest servers take too.

    Raises:
        data.errors.ImageError: an image file is gone or changed.
    """
    return [{"role": message.role, "content": _content(message, max_pixels, detail)} for message in request.messages]


def _content(message: Message, max_pixels: int, detail: str | None) -> str | list[dict[str, Any]]:
    if all(isinstance(part, TextPart) for part in message.parts):
        return "\n".join(_sendable(part.text) for part in message.parts if isinstance(part, TextPart))
    # Chat templates join parts without a separator, so each text brings the line breaks that part it from its neighbours.
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            if parts and parts[-1]["type"] == "text":
                parts[-1]["text"] += _sendable(part.text) + "\n"
            else:
                parts.append({"type": "text", "text": ("\n" if parts else "") + _sendable(part.text) + "\n"})
        else:
            image = {"url": data_url(part.picture, max_pixels)} | ({"detail": detail} if detail else {})
            parts.append({"type": "image_url", "image_url": image})
    return parts


def _sendable(text: str) -> str:
    """The text, with "?" for lone surrogates, which a file may hold and UTF-8 cannot."""
    return text.encode(errors="replace").decode()


def texts(messages: list[ChatMessage]) -> list[str]:
    """Every text of the messages, for counting."""
    found = []
    for message in messages:
        content = message["content"]
        found += [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
    return found
