"""What went wrong with a call, as one of our errors: what was asked, what the server said, what to do."""

import re

from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AuthenticationError, NotFoundError, PermissionDeniedError

from models.errors import AccessRefused, BackendError, BackendUnavailable, ContextLengthError, RequestRefused
from models.openai_compatible.settings import ServerSettings

_RETRIED = {408, 409, 429}
# How vLLM, OpenAI, llama.cpp, TGI and others say that a request is too long.
_TOO_LONG = re.compile(
    r"context[ _]length|context[ _]size|context window|maximum model length|max_model_len|exceed_context_size"
    r"|max_new_tokens|prompt is too long|input is too long|too many tokens",
    re.IGNORECASE,
)
_SAID_CHARACTERS = 600


def said(error: APIError, *, secret: str | None = None) -> str:
    """What the server said, shortened, on one line, without the API key should the server have echoed it."""
    text = error.message
    if isinstance(error, APIStatusError):
        body = error.body if isinstance(error.body, dict) else {}
        message = body.get("message") or body.get("detail") or body.get("error")
        text = message if isinstance(message, str) else error.message
    text = " ".join(text.split())
    if secret:
        text = text.replace(secret, "[the API key]")
    return text if len(text) <= _SAID_CHARACTERS else text[:_SAID_CHARACTERS] + " …"


def is_too_long(error: APIError) -> bool:
    """Whether the server refused a request because the model does not read that much."""
    return isinstance(error, APIStatusError) and (
        error.code == "context_length_exceeded" or bool(_TOO_LONG.search(f"{error.type} {said(error)}"))
    )


def explain(error: APIError, *, asked: str, length: str, server: ServerSettings, secret: str | None) -> BackendError:
    """Turn an error of the SDK, all retries spent, into one of ours.

    Args:
        error: What the SDK raised.
        asked: Names the request.
        length: How long the request is, and of what.
        server: The server that was asked.
        secret: The API key, which is cut out of whatever the server said.
    """
    at = f"{server.base_url} (model {server.model})"
    words = said(error, secret=secret)
    tries = f"after {server.max_retries + 1} tries"
    if isinstance(error, APITimeoutError):
        return BackendUnavailable(
            f"{asked}: {at} said nothing for {server.timeout_seconds:g} s, {tries}; look at the server's load, "
            "lower concurrency or raise timeout_seconds"
        )
    if isinstance(error, APIConnectionError):
        reason = type(error.__cause__).__name__ if error.__cause__ else "connection lost"
        return BackendUnavailable(f"{asked}: no connection to {at} ({reason}), {tries}; start the server or correct base_url")
    if not isinstance(error, APIStatusError):
        return BackendUnavailable(f"{asked}: {at} broke off: {words}; look at the server's log")
    if isinstance(error, AuthenticationError | PermissionDeniedError):
        name = server.api_key_env
        which = f"the key in {name}" if name else "a call without a key"
        repair = f"put a valid key into {name}" if name else "name the key's variable in api_key_env"
        return AccessRefused(f"{asked}: {at} refuses {which} (HTTP {error.status_code}): {words}; {repair}")
    if error.code == "insufficient_quota":
        return AccessRefused(f"{asked}: the account behind {server.api_key_env} at {at} has no quota left: {words}")
    if is_too_long(error):
        return ContextLengthError(
            f"{asked} is too long for the model: {length}; {at} said: {words}. Show less (fewer memories or forms, smaller "
            "max_image_pixels) or start the server with a longer context"
        )
    if isinstance(error, NotFoundError):
        return AccessRefused(f"{asked}: {at} does not know this address or model (HTTP 404): {words}; correct base_url or model")
    if error.status_code in _RETRIED or error.status_code >= 500:
        pause = error.response.headers.get("retry-after")
        wait = f"it asks to wait {pause[:40]} s" if pause else "look at the server's log or wait"
        return BackendUnavailable(f"{asked}: {at} keeps failing with HTTP {error.status_code}: {words}; {wait}, then run again")
    return RequestRefused(f"{asked} ({length}) is refused by {at} with HTTP {error.status_code}: {words}")


def combine(failures: list[BackendError], n_asked: int) -> BackendError:
    """One error for all failed calls of a batch: their own if it is one, their kind if it is the same."""
    if len(failures) == 1:
        return failures[0]
    kinds = {type(failure) for failure in failures}
    kind = kinds.pop() if len(kinds) == 1 else BackendError
    shown = [f"  - {failure}" for failure in failures[:20]]
    more = [f"  … and {len(failures) - 20} more"] if len(failures) > 20 else []
    return kind("\n".join([f"{len(failures)} of {n_asked} requests failed; the replies to the others are kept:", *shown, *more]))
