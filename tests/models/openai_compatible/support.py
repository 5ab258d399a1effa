"""Settings, requests and pictures for the tests of OpenAI-compatible servers."""

from pathlib import Path
from typing import Any

from PIL import Image

from data.images import Picture, load_picture
from models.encoders.minilm import MiniLM
from models.openai_compatible.settings import OpenAISettings
from models.requests import ImagePart, Message, Request, TextPart

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


TOKENIZER = str(MiniLM().folder)


def openai_settings(base_url: str, **changes: Any) -> OpenAISettings:
    values: dict[str, Any] = {
        "base_url": base_url,
        "model": "fault-vlm",
        "api_key_env": None,
        "concurrency": 4,
        "timeout_seconds": 5.0,
        "connect_timeout_seconds": 2.0,
        "max_retries": 2,
        "max_failures": 3,
        "revision": "",
        "tokenizer": TOKENIZER,
        "image_tokens": "qwen3_vl",
        "max_image_pixels": 1_048_576,
        "streaming": False,
        "extra": {},
    }
    return OpenAISettings(**(values | changes))


def ask(*texts: str, schema: dict[str, Any] | None = None, pictures: tuple[Picture, ...] = ()) -> Request:
    parts = (*(TextPart(text) for text in texts), *(ImagePart(picture) for picture in pictures))
    messages = (Message("system", (TextPart("You answer briefly."),)), Message("user", parts))
    return Request("answer", "answer", messages, None, schema=schema)


def picture(path: Path, size: tuple[int, int] = (64, 48), color: str = "teal", **how: Any) -> Picture:
    Image.new("RGB", size, color).save(path, **how)
    return load_picture(path)
