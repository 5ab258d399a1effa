"""One chat completion: sent, received whole or as a stream, and checked to be one."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openai import APIError, APIStatusError, AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

from models.errors import ReplyError
from models.openai_compatible.connection import UnusableBody


@dataclass(frozen=True)
class Completion:
    """What came back. Token counts are None where the server reports none; ``is_cut``: it stopped at the output limit."""

    text: str
    is_cut: bool
    input_tokens: int | None
    output_tokens: int | None
    first_token_seconds: float | None


async def complete(client: AsyncOpenAI, body: Mapping[str, Any], *, streaming: bool, asked: str) -> Completion:
    """Ask once.

    Raises:
        UnusableBody: HTTP 200 with something that is no chat completion, is empty, or breaks off; worth another try.
        ReplyError: a reply without text that would be the same again.
        openai.APIError: what the SDK raises, its retries spent.
    """
    if streaming:
        return await _streamed(client, body, asked)
    try:
        answer = await client.chat.completions.create(**body)
    except APIError:
        raise
    except ValueError as error:  # the SDK lets its JSON decoder's error pass
        raise UnusableBody(f"a body that is not JSON ({error})") from error
    choices = getattr(answer, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise UnusableBody("a reply without `choices`")
    message = getattr(choices[0], "message", None)
    text, reason = getattr(message, "content", None), getattr(choices[0], "finish_reason", None)
    _check_text(text, reason, getattr(message, "refusal", None), asked)
    return Completion(str(text), reason == "length", *_usage(getattr(answer, "usage", None)), first_token_seconds=None)


async def _streamed(client: AsyncOpenAI, body: Mapping[str, Any], asked: str) -> Completion:
    started = time.perf_counter()
    first: float | None = None
    pieces: list[str] = []
    refusal, reason, usage = "", None, None
    chunks: AsyncStream[ChatCompletionChunk] = await client.chat.completions.create(**body, stream=True)
    try:
        async with chunks:
            async for chunk in chunks:
                usage = getattr(chunk, "usage", None) or usage
                for choice in (getattr(chunk, "choices", None) or [])[:1]:
                    delta = getattr(choice, "delta", None)
                    piece = getattr(delta, "content", None)
                    if first is None and (piece or getattr(delta, "reasoning_content", None)):
                        first = time.perf_counter() - started
                    if isinstance(piece, str):
                        pieces.append(piece)
                    refusal += getattr(delta, "refusal", None) or ""
                    reason = getattr(choice, "finish_reason", None) or reason
    except APIStatusError:
        raise
    except APIError as error:  # after the first byte the SDK retries nothing
        raise UnusableBody(f"a stream that broke off ({error.message})") from error
    except ValueError as error:
        raise UnusableBody(f"a stream that is not JSON ({error})") from error
    if reason is None:
        raise UnusableBody("a stream that ended before the reply did")
    text = "".join(pieces)
    _check_text(text, reason, refusal, asked)
    return Completion(text, reason == "length", *_usage(usage), first_token_seconds=first)


def _check_text(text: object, reason: object, refusal: object, asked: str) -> None:
    if isinstance(text, str) and text.strip():
        return
    if refusal:
        raise ReplyError(f"{asked}: the model declines to answer: {str(refusal)[:300]!r}")
    if reason == "length":
        raise ReplyError(
            f"{asked}: the model spent all its output tokens before it said anything, as reasoning models do; switch reasoning off "
            'or down in `extra`, for example {"reasoning_effort": "minimal"} or {"chat_template_kwargs": {"enable_thinking": false}}'
        )
    if reason == "content_filter":
        raise ReplyError(f"{asked}: the server's content filter withheld the reply; leave this content out or use another model")
    raise UnusableBody(f"an empty reply (finish_reason {reason!r})")


def _usage(usage: object) -> tuple[int | None, int | None]:
    """Input and output tokens as the server reports them; a report that cannot be true is none."""
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int) and not isinstance(count, bool) and count > 0 for count in counts):
        return None, None
    return counts[0], counts[1]
