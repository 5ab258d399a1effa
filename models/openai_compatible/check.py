"""The start-up check: one look at the model list and one tiny request, so that a run does not fail in its middle."""

import base64
import io
import logging
import re
from dataclasses import replace
from typing import Any

from openai import APIError, APIStatusError, AsyncOpenAI
from PIL import Image

from models.errors import AccessRefused, BackendError, RequestRefused
from models.openai_compatible.counting import NO_PICTURES
from models.openai_compatible.dialect import Dialect
from models.openai_compatible.failures import explain, said
from models.openai_compatible.settings import OpenAISettings
from models.requests import Decoding

logger = logging.getLogger(__name__)

_RETRIES = 1
_SHOWN_MODELS = 20
_SIDE = 64
_DECODING = Decoding(temperature=0.0, max_output_tokens=16)
_LIMIT = re.compile(r"at most (\d+)", re.IGNORECASE)


async def check_server(client: AsyncOpenAI, settings: OpenAISettings, dialect: Dialect, *, n_images: int, secret: str | None) -> None:
    """Find out whether the server serves the model, to this key, with that many pictures in one request.

    The request is billed; it holds a few words and ``n_images`` pictures of 64 × 64 pixels.

    Raises:
        BackendUnavailable: no server answers, or it fails.
        AccessRefused: it refuses the key, or serves other models (the message lists them).
        RequestRefused: the model takes no pictures, or fewer than ``n_images``.
        BackendError: any other refusal.
    """
    settings = replace(settings, max_retries=min(_RETRIES, settings.max_retries))
    client = client.with_options(max_retries=settings.max_retries)
    asked = "start-up check"
    try:
        await _check_model(client, settings)
        if settings.image_tokens == NO_PICTURES or n_images == 0:
            await _probe(client, dialect, 0)
            return
        try:
            await _probe(client, dialect, n_images)
        except APIStatusError as error:
            if error.status_code in {401, 403, 404, 429}:
                raise
            raise await _picture_problem(client, settings, dialect, n_images, said(error, secret=secret)) from error
    except APIError as error:
        raise explain(
            error, asked=asked, length=f"a few words and {n_images} pictures of {_SIDE} × {_SIDE}", server=settings, secret=secret
        ) from error


async def _check_model(client: AsyncOpenAI, settings: OpenAISettings) -> None:
    try:
        page = await client.models.list()
        names = [model.id for model in page.data if isinstance(model.id, str)]
    except APIStatusError as error:
        if error.status_code not in {404, 405, 501}:
            raise
        names = []
    except (ValueError, TypeError, AttributeError):  # HTTP 200 with something else than a list of models
        names = []
    if not names:
        logger.warning("%s lists no models; whether it serves %s shows at the first request", settings.base_url, settings.model)
    elif settings.model not in names:
        shown = ", ".join(names[:_SHOWN_MODELS]) + (f" and {len(names) - _SHOWN_MODELS} more" if len(names) > _SHOWN_MODELS else "")
        raise AccessRefused(f"{settings.base_url} does not serve model={settings.model!r}; it serves {shown}; correct model")


async def _probe(client: AsyncOpenAI, dialect: Dialect, n_images: int) -> None:
    picture: dict[str, Any] = {"type": "image_url", "image_url": {"url": _picture(), "detail": "low"}}
    content: Any = [{"type": "text", "text": "Reply with OK."}, *[picture] * n_images] if n_images else "Reply with OK."
    while True:
        body = dialect.body([{"role": "user", "content": content}], _DECODING, None)
        body.pop("stream_options", None)  # this request is not streamed
        try:
            await client.chat.completions.create(**body)
            return
        except APIStatusError as error:
            if not dialect.learn(error, body):
                raise


async def _picture_problem(client: AsyncOpenAI, settings: OpenAISettings, dialect: Dialect, n_images: int, words: str) -> BackendError:
    """Tell a model that takes no pictures from one that takes too few, and both from any other refusal."""
    at = f"{settings.base_url} (model {settings.model})"
    for fewer in (0, 1):
        try:
            await _probe(client, dialect, fewer)
        except APIStatusError as error:
            if fewer == 0:
                return RequestRefused(f"{at} refuses even a request without pictures with HTTP {error.status_code}: {words}")
            return RequestRefused(
                f"{at} takes no pictures: {words}. Serve a vision-language model (llama.cpp: with --mmproj), or set image_tokens=none and "
                "leave images and views out of memory.forms"
            )
    found = _LIMIT.search(words)
    limit = f"at most {found[1]} pictures" if found else f"fewer than {n_images} pictures"
    return RequestRefused(
        f"{at} takes {limit} in one request, but one question can show {n_images} (memories × pictures of their forms): {words}. Raise "
        f"the server's limit (vLLM: --limit-mm-per-prompt '{{\"image\": {n_images}}}') or show fewer (memory.k_ret, memory.forms)"
    )


def _picture() -> str:
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((_SIDE, _SIDE)).convert("RGB").save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
