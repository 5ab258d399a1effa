"""Replies that are to be JSON: how they are asked for in words, found in a text, and repaired once."""

import json
from collections.abc import Mapping
from typing import Any

from models.openai_compatible.rendering import ChatMessage
from models.reply_schema import json_problem

_MARK = "JSON schema of the reply:"


def ask_in_words(messages: list[ChatMessage], schema: Mapping[str, Any]) -> list[ChatMessage]:
    """Add the schema to the first message, for a server that takes no ``response_format``."""
    words = f"Reply with one JSON object and nothing else, no code fence.\n{_MARK} {json.dumps(schema)}"
    first, *others = messages
    if first["role"] == "system" and isinstance(first["content"], str):
        return [{"role": "system", "content": f"{first['content']}\n\n{words}"}, *others]
    return [{"role": "system", "content": words}, *messages]


def ask_again(messages: list[ChatMessage], reply: str, problem: str, schema: Mapping[str, Any]) -> list[ChatMessage]:
    """Add the unusable reply and what was wrong with it."""
    words = (
        f"Your reply cannot be used: it {problem}\nReply again, with one JSON object and nothing else, no code fence.\n"
        f"{_MARK} {json.dumps(schema)}"
    )
    return [*messages, {"role": "assistant", "content": reply}, {"role": "user", "content": words}]


def find_json(text: str, schema: Mapping[str, Any]) -> tuple[str, str | None]:
    """The JSON in a reply that may have prose or a code fence around it.

    Returns:
        The first object in the text that fits the schema, and None; or the whole text, and what is wrong with it.
    """
    problem = json_problem(text, schema)
    if problem is None:
        return text, None
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if json_problem(text[start:end], schema) is None:
                return text[start:end], None
        start = text.find("{", end)
    return text, problem
