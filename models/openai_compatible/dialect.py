"""What one server does not take of a request, learned from its refusals: it is asked without it, and the run says so once."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from openai import APIStatusError

from models.openai_compatible.failures import is_too_long, said
from models.requests import Decoding

logger = logging.getLogger(__name__)

_REFUSALS = {400, 404, 415, 422, 500, 501}
_SCHEMA_WORDS = ("response_format", "json_schema", "schema", "grammar", "guided", "structured")


class Dialect:
    """Makes the body of a request as this server takes it. Refusals are kept for the backend's life."""

    def __init__(self, model: str, *, streaming: bool, extra: Mapping[str, Any]) -> None:
        self._model = model
        self._streaming = streaming
        self._extra = dict(extra)
        self._temperature = True
        self._limit_name = "max_tokens"  # known to every server but OpenAI's newer models, which say what they want instead
        self._stream_options = True
        self._refused_schemas: set[str] = set()

    def takes_schema(self, schema: Mapping[str, Any]) -> bool:
        """Whether the server has not refused this schema as a ``response_format``."""
        return _canonical(schema) not in self._refused_schemas

    def body(self, messages: list[dict[str, Any]], decoding: Decoding, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """The fields of a chat completion, but ``stream`` itself."""
        body: dict[str, Any] = {"model": self._model, "messages": messages, self._limit_name: decoding.max_output_tokens}
        if self._temperature:
            body["temperature"] = decoding.temperature
        if schema is not None and self.takes_schema(schema):
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": dict(schema)}}
        if self._streaming and self._stream_options:
            body["stream_options"] = {"include_usage": True}
        if self._extra:
            body["extra_body"] = self._extra
        return body

    def learn(self, error: APIStatusError, body: Mapping[str, Any]) -> bool:
        """Whether the server refused one field of ``body`` that can be left out or renamed; the next body will be without it."""
        if error.status_code not in _REFUSALS or is_too_long(error):
            return False
        words = f"{error.param or ''} {said(error)}".lower()
        if "temperature" in words and "temperature" in body:
            self._say(self._temperature, f"refuses `temperature`: it is asked without it and answers at its own default ({said(error)})")
            self._temperature = False
        elif "max_completion_tokens" in words and "max_tokens" in body:
            self._say(self._limit_name == "max_tokens", "wants `max_completion_tokens` instead of `max_tokens`")
            self._limit_name = "max_completion_tokens"
        elif "stream_options" in words and "stream_options" in body:
            self._say(self._stream_options, "refuses `stream_options`: tokens are counted by rule")
            self._stream_options = False
        elif "response_format" in body and any(word in words for word in _SCHEMA_WORDS):
            schema = _canonical(body["response_format"]["json_schema"]["schema"])
            self._say(
                schema not in self._refused_schemas, f"refuses a JSON schema as `response_format`: it is asked in words ({said(error)})"
            )
            self._refused_schemas.add(schema)
        else:
            return False
        return True

    def _say(self, is_news: bool, what: str) -> None:
        if is_news:
            logger.warning("%s %s", self._model, what)


def _canonical(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)
