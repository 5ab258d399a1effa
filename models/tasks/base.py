"""What every task's request and reply share: prompt files, images as a model sees them, JSON replies."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from data.images import Picture
from models.errors import ReplyError
from models.requests import ImagePart, Message, Phase, Request, TextPart

PROMPTS = Path(__file__).parents[1] / "prompts"


@cache
def prompt(task: str) -> str:
    """The prompt text of a task."""
    return (PROMPTS / f"{task}.md").read_text(encoding="utf-8").strip()


def prompts_hash(*tasks: str) -> str:
    """SHA-256 (hex) over the prompt files of some tasks, or of all, for run manifests and bank fingerprints."""
    digest = hashlib.sha256()
    for path in sorted(path for path in PROMPTS.iterdir() if not tasks or path.stem in tasks):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class SeenImage:
    """An image as a model sees it: its pixels, or its caption where the file is absent; never both."""

    image_id: str
    picture: Picture | None
    caption: str

    def __post_init__(self) -> None:
        if self.picture is not None:
            object.__setattr__(self, "caption", "")


def seen_image_parts(image: SeenImage, name: str) -> list[TextPart | ImagePart]:
    """The message parts of one image: its pixels after its name, or its caption."""
    if image.picture is None:
        return [TextPart(f"{name} (not available), described as: {image.caption}")]
    return [TextPart(f"{name}:"), ImagePart(image.picture)]


def task_request(
    phase: Phase,
    task: str,
    inputs: Any,
    parts: list[TextPart | ImagePart],
    schema: Mapping[str, Any] | None = None,
    *,
    lenient: bool = False,
) -> Request:
    """A request of one system message (the task's prompt) and one user message."""
    system = Message("system", (TextPart(prompt(task)),))
    return Request(phase, task, (system, Message("user", tuple(parts))), inputs, schema=schema, lenient=lenient)


def json_object(text: str, task: str) -> dict[str, Any]:
    """Parse a reply that must be a JSON object; raises `ReplyError`."""
    try:
        reply = json.loads(text)
    except ValueError as error:
        raise ReplyError(f"{task} reply is not JSON ({error}): {text[:300]!r}") from error
    if not isinstance(reply, dict):
        raise ReplyError(f"{task} reply is not a JSON object: {text[:300]!r}")
    return reply
