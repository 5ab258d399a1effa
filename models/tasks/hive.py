"""The tasks that build HiVe-Mem's part of a bank: memorise, caption, ground."""

from dataclasses import dataclass

from data.images import Picture
from models.errors import ReplyError
from models.requests import ImagePart, Request, TextPart
from models.tasks.base import SeenImage, json_object, seen_image_parts, task_request

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
        parts += seen_image_parts(image, f"Image {image.image_id}")
    return task_request("build", "memorise", inputs, parts, MEMORISE_SCHEMA)


def parse_memorise(text: str) -> MemoriseReply:
    """Check and parse the reply of `memorise_request`; raises `ReplyError`."""
    reply = json_object(text, "memorise")
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
    return task_request("build", "caption", inputs, [TextPart(f"Image {inputs.image_id}:"), ImagePart(inputs.picture)])


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
    return task_request("build", "ground", inputs, parts, GROUND_SCHEMA)


def parse_ground(text: str) -> GroundReply:
    """Check and parse the reply of `ground_request`; raises `ReplyError`."""
    reply = json_object(text, "ground")
    box = reply.get("box")
    numbers = (
        isinstance(box, list)
        and len(box) == 4
        and all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < 1e9 for x in box)
    )
    if not isinstance(reply.get("target"), str) or not (box is None or numbers):
        raise ReplyError(f"ground reply: needs a target and a box of four numbers or null, got {text[:300]!r}")
    return GroundReply(reply["target"], None if box is None else (box[0], box[1], box[2], box[3]))
