"""The tasks that models are asked to do: inputs, rendered messages and reply of each.

Each task is a frozen ``…Inputs`` dataclass, a function that renders it to a `Request` (prompt texts are the files
in ``models/prompts``), and, where the reply is JSON, a function that checks and parses it.
"""

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

PROMPTS = Path(__file__).parent / "prompts"


@cache
def prompt(task: str) -> str:
    """The prompt text of a task."""
    return (PROMPTS / f"{task}.md").read_text(encoding="utf-8").strip()


def prompts_hash() -> str:
    """SHA-256 (hex) over all prompt files, for run manifests and bank fingerprints."""
    digest = hashlib.sha256()
    for path in sorted(PROMPTS.glob("*.md")):
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


def _seen_image_parts(image: SeenImage, name: str) -> list[TextPart | ImagePart]:
    if image.picture is None:
        return [TextPart(f"{name} (not available), described as: {image.caption}")]
    return [TextPart(f"{name}:"), ImagePart(image.picture)]


def _request(phase: Phase, task: str, inputs: Any, parts: list[TextPart | ImagePart], schema: Mapping[str, Any] | None = None) -> Request:
    system = Message("system", (TextPart(prompt(task)),))
    return Request(phase, task, (system, Message("user", tuple(parts))), inputs, schema=schema)


# Memorise: summary and both anchor sets of one episode, in one call (HiVe-Mem, §3.1 and A.1)


@dataclass(frozen=True)
class MemoriseInputs:
    """One interaction episode: its date, its raw text (image ids included) and its images."""

    date: str
    text: str
    images: tuple[SeenImage, ...]


@dataclass(frozen=True)
class MemoriseReply:
    """The compact summary and the surface forms of the textual and visual anchors, in the model's order."""

    summary: str
    textual_anchors: tuple[str, ...]
    visual_anchors: tuple[str, ...]


_STRINGS = {"type": "array", "items": {"type": "string"}}
MEMORISE_SCHEMA = {
    "type": "object",
    "properties": {"summary": {"type": "string", "minLength": 1}, "textual_anchors": _STRINGS, "visual_anchors": _STRINGS},
    "required": ["summary", "textual_anchors", "visual_anchors"],
    "additionalProperties": False,
}


def memorise_request(inputs: MemoriseInputs) -> Request:
    """Ask for summary and anchors of one episode."""
    parts: list[TextPart | ImagePart] = [TextPart(f"Date: {inputs.date}\n\n{inputs.text}")]
    for image in inputs.images:
        parts += _seen_image_parts(image, f"Image {image.image_id}")
    return _request("build", "memorise", inputs, parts, MEMORISE_SCHEMA)


def parse_memorise(text: str) -> MemoriseReply:
    """Check and parse the reply of `memorise_request`; raises `ReplyError`."""
    reply = _json_object(text, "memorise")
    lists = {name: reply.get(name) for name in ("textual_anchors", "visual_anchors")}
    bad = [name for name, value in lists.items() if not isinstance(value, list) or not all(isinstance(item, str) for item in value)]
    if not isinstance(reply.get("summary"), str) or not reply["summary"].strip():
        bad.append("summary")
    if bad:
        raise ReplyError(f"memorise reply: {', '.join(sorted(bad))} missing or of the wrong type in {text[:300]!r}")
    return MemoriseReply(reply["summary"].strip(), tuple(reply["textual_anchors"]), tuple(reply["visual_anchors"]))


# Caption: one image


@dataclass(frozen=True)
class CaptionInputs:
    """One image to be described in a sentence or two."""

    image_id: str
    picture: Picture


def caption_request(inputs: CaptionInputs) -> Request:
    """Ask for a caption; the reply is plain text."""
    return _request("build", "caption", inputs, [TextPart(f"Image {inputs.image_id}:"), ImagePart(inputs.picture)])


# Ground: the box of the object that the context speaks of (HiVe-Mem, A.1)


@dataclass(frozen=True)
class GroundInputs:
    """One image and the passage of the dialogue around it."""

    image_id: str
    picture: Picture
    context: str


@dataclass(frozen=True)
class GroundReply:
    """The target's name and its box (left, top, right, bottom) in thousandths of the image, or None if there is none."""

    target: str
    box: tuple[float, float, float, float] | None


GROUND_SCHEMA = {
    "type": "object",
    "properties": {
        "target": {"type": "string"},
        "box": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4}]},
    },
    "required": ["target", "box"],
    "additionalProperties": False,
}


def ground_request(inputs: GroundInputs) -> Request:
    """Ask for the box of what the context is about, in coordinates from 0 to 1000."""
    parts: list[TextPart | ImagePart] = [
        TextPart(f"Context:\n{inputs.context}"),
        TextPart(f"Image {inputs.image_id}:"),
        ImagePart(inputs.picture),
    ]
    return _request("build", "ground", inputs, parts, GROUND_SCHEMA)


def parse_ground(text: str) -> GroundReply:
    """Check and parse the reply of `ground_request`; raises `ReplyError`."""
    reply = _json_object(text, "ground")
    box = reply.get("box")
    numbers = (
        isinstance(box, list)
        and len(box) == 4
        and all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < 1e9 for x in box)
    )
    if not isinstance(reply.get("target"), str) or not (box is None or numbers):
        raise ReplyError(f"ground reply: needs a target and a box of four numbers or null, got {text[:300]!r}")
    return GroundReply(reply["target"], None if box is None else (box[0], box[1], box[2], box[3]))


# Answer: the question with the composed evidence


@dataclass(frozen=True)
class ShownText:
    """The text of one evidence form of one memory."""

    form: str
    text: str

    @property
    def line(self) -> str:
        """As rendered in the request and counted in C(z)."""
        return f"{self.form}: {self.text}"


@dataclass(frozen=True)
class ShownPicture:
    """One picture of one evidence form of one memory, after its id."""

    form: str
    image_id: str
    picture: Picture

    @property
    def line(self) -> str:
        """The text before the picture, as rendered in the request and counted in C(z)."""
        return f"{self.form} {self.image_id}:"


@dataclass(frozen=True)
class ShownMemory:
    """A memory that shows at least one form; ``number`` counts from 1 among those."""

    number: int
    date: str
    items: tuple[ShownText | ShownPicture, ...]

    @property
    def line(self) -> str:
        """The memory's heading, as rendered in the request and counted in C(z)."""
        return memory_heading(self.number, self.date)


def memory_heading(number: int, date: str) -> str:
    """The line that opens a memory."""
    return f"[Memory {number}] {date}"


@dataclass(frozen=True)
class AnswerInputs:
    """A question with its images, the memories it may use, and the benchmark's format instruction ("" for none).

    The question's images have no ids here, because the messages give them none.
    """

    question: str
    question_images: tuple[SeenImage, ...]
    memories: tuple[ShownMemory, ...]
    instruction: str = ""


NO_MEMORY = "No memory shown."


def answer_request(inputs: AnswerInputs) -> Request:
    """Ask the question over the shown memories; the reply is the answer, as short plain text."""
    parts: list[TextPart | ImagePart] = []
    for memory in inputs.memories:
        parts.append(TextPart(memory.line))
        for item in memory.items:
            parts.append(TextPart(item.line))
            if isinstance(item, ShownPicture):
                parts.append(ImagePart(item.picture))
    if not inputs.memories:
        parts.append(TextPart(NO_MEMORY))
    parts.append(TextPart(f"Question: {inputs.question}"))
    if inputs.instruction:
        parts.append(TextPart(inputs.instruction))
    for image in inputs.question_images:
        parts += _seen_image_parts(image, "Question image")
    return _request("answer", "answer", inputs, parts)


def _json_object(text: str, task: str) -> dict[str, Any]:
    try:
        reply = json.loads(text)
    except ValueError as error:
        raise ReplyError(f"{task} reply is not JSON ({error}): {text[:300]!r}") from error
    if not isinstance(reply, dict):
        raise ReplyError(f"{task} reply is not a JSON object: {text[:300]!r}")
    return reply
