"""The settings of an OpenAI-compatible server, and of the backend that asks it. The defaults are in ``configs/``."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from models.errors import AccessRefused, BackendError


@dataclass(frozen=True)
class ServerSettings:
    """Where a server is and how hard it is tried.

    Attributes:
        base_url: Up to and including ``/v1``; without user name, password or query, because they would be secrets.
        model: The name under which the server lists the model.
        api_key_env: Name of the environment variable that holds the API key; None where the server wants none.
        concurrency: Requests in flight at once.
        timeout_seconds: Longest silence of the server within one try.
        connect_timeout_seconds: Longest wait for a connection.
        max_retries: Further tries of one call after 408, 409, 429, 5xx, a lost connection or an unusable body.
        max_failures: Calls that fail one after the other, all retries spent, before the run is stopped.

    Raises:
        BackendError: values that cannot be used, all of them at once.
    """

    base_url: str
    model: str
    api_key_env: str | None
    concurrency: int
    timeout_seconds: float
    connect_timeout_seconds: float
    max_retries: int
    max_failures: int

    def __post_init__(self) -> None:
        problems = _url_problems(self.base_url)
        if not self.model.strip():
            problems.append("model is empty; name one that the server lists under /models")
        if self.api_key_env is not None and not re.fullmatch("[A-Z][A-Z0-9_]*", self.api_key_env):
            # A key pasted here by mistake must not be echoed; keys have small letters.
            problems.append(
                "api_key_env is not the name of an environment variable in capitals (the key itself does not belong in a setting)"
            )
        at_least = {"concurrency": 1, "max_retries": 0, "max_failures": 1}
        problems += [
            f"{name}={getattr(self, name)} must be at least {least}" for name, least in at_least.items() if getattr(self, name) < least
        ]
        positive = ("timeout_seconds", "connect_timeout_seconds")
        problems += [f"{name}={getattr(self, name)} must be positive" for name in positive if not getattr(self, name) > 0]
        if problems:
            raise BackendError(
                "settings of the OpenAI-compatible server that cannot be used:\n" + "\n".join(f"  - {item}" for item in problems)
            )

    def api_key(self) -> str | None:
        """Read the key from the environment; it is kept nowhere else than in the client.

        Raises:
            AccessRefused: the variable is not set, or what it holds cannot be a key. The value is not quoted.
        """
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise AccessRefused(
                f"no API key: set the environment variable {self.api_key_env}, or api_key_env=null where {self.base_url} wants none"
            )
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise AccessRefused(f"the environment variable {self.api_key_env} holds spaces or characters that no API key has; set it again")
        return key


@dataclass(frozen=True)
class OpenAISettings(ServerSettings):
    """What `models.openai_compatible.backend.OpenAIBackend` needs.

    Attributes:
        revision: Free text that becomes part of every cache key; change it when other weights are served under one name.
        tokenizer: A ``tokenizer.json`` or a folder that holds one, or an OpenAI encoding (``o200k_base``, ``cl100k_base``).
        image_tokens: Name of the rule by which pictures are counted: ``qwen3_vl``, a model of ``image_tokens.yaml``, or
            ``none`` for a model that takes no pictures.
        max_image_pixels: Pictures are downscaled to at most this many pixels before they are counted and sent.
        streaming: Whether replies are streamed, which measures the seconds to the first token.
        extra: Further fields of every request's body, for example ``{"chat_template_kwargs": {"enable_thinking": false}}``.
    """

    revision: str
    tokenizer: str
    image_tokens: str
    max_image_pixels: int
    streaming: bool
    extra: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_image_pixels < 1024:
            raise BackendError(f"max_image_pixels={self.max_image_pixels} must be at least 1024 (32 × 32 pixels)")
        own = {"model", "messages", "temperature", "max_tokens", "max_completion_tokens", "response_format", "stream", "stream_options"}
        taken = sorted(own & set(self.extra))
        if taken:
            raise BackendError(f"extra.{', extra.'.join(taken)}: set by the framework; remove it from extra")


def _url_problems(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return [f"base_url is not a URL ({error})"]
    if parts.username or parts.password or parts.query or parts.fragment:
        return ["base_url holds a user name, password, query or fragment, which could be a secret: put the key into api_key_env's variable"]
    if parts.scheme not in {"http", "https"} or not host:
        return [f"base_url={url!r} must look like http://127.0.0.1:8000/v1"]
    return []
