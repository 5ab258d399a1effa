"""The tasks that build AdaMM's part of a bank: extract, table, describe (AdaMM, §3.3, Appendix A)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from data.typed_values import COLUMN_TYPES, ColumnType
from models.errors import ReplyError
from models.requests import ImagePart, Request, TextPart
from models.tasks.base import SeenImage, json_object, seen_image_parts, task_request

# Extract: the attribute-value observations of one round (Eq. 1)


@dataclass(frozen=True)
class ExtractInputs:
    """One round: its session's date, what was said ("user: …", "assistant: …"), its images and their captions by id."""

    date: str
    dialogue: str
    images: tuple[SeenImage, ...]
    captions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ExtractedValue:
    """One observation as the model gave it: ``quote`` points into the dialogue, ``image_id`` to an image; one is ""."""

    attribute: str
    value: str
    quote: str
    image_id: str


_STRING = {"type": "string"}
_TEXT = {"type": "string", "minLength": 1}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


EXTRACT_SCHEMA = _object(
    {"observations": {"type": "array", "items": _object({"attribute": _TEXT, "value": _TEXT, "quote": _STRING, "image_id": _STRING})}}
)


def extract_request(inputs: ExtractInputs) -> Request:
    """Ask for every grounded attribute-value pair of one round."""
    parts: list[TextPart | ImagePart] = [TextPart(f"Date: {inputs.date}\n\n{inputs.dialogue}")]
    for image in inputs.images:
        parts += seen_image_parts(image, f"Image {image.image_id}")
    parts += [TextPart(f"Caption of {image_id}: {caption}") for image_id, caption in inputs.captions]
    return task_request("build", "extract", inputs, parts, EXTRACT_SCHEMA)


def parse_extract(text: str) -> tuple[ExtractedValue, ...]:
    """Check and parse the reply of `extract_request`; raises `ReplyError`. Whether a pointer holds is not checked here."""
    items = json_object(text, "extract").get("observations")
    if not isinstance(items, list):
        raise ReplyError(f"extract reply: needs a list observations, got {text[:300]!r}")
    names = ("attribute", "value", "quote", "image_id")
    bad = [
        place
        for place, item in enumerate(items)
        if not isinstance(item, dict) or any(not isinstance(item.get(name), str) for name in names)
    ]
    if bad:
        raise ReplyError(f"extract reply: observations {bad[:10]} need the texts {', '.join(names)} in {text[:300]!r}")
    return tuple(ExtractedValue(*(item[name] for name in names)) for item in items)


# Table: the metadata of one induced schema (§3.3.3)


@dataclass(frozen=True)
class TableInputs:
    """The attributes of a schema in order, each with up to five sampled values."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class TableReply:
    """A table's name and description, and type and description of each column, in the order of the inputs."""

    name: str
    description: str
    types: tuple[ColumnType, ...]
    descriptions: tuple[str, ...]


TABLE_SCHEMA = _object(
    {
        "name": _TEXT,
        "description": _TEXT,
        "columns": {
            "type": "array",
            "items": _object({"name": _TEXT, "type": {"enum": list(COLUMN_TYPES)}, "description": _STRING}),
        },
    }
)


def table_request(inputs: TableInputs) -> Request:
    """Ask for a table's name and description and for its columns' types."""
    lines = [f"{attribute}: {' | '.join(values)}" for attribute, values in inputs.columns]
    return task_request("build", "table", inputs, [TextPart("\n".join(lines))], TABLE_SCHEMA)


def parse_table(text: str, attributes: tuple[str, ...]) -> TableReply:
    """Check and parse the reply of `table_request` about those attributes; raises `ReplyError`."""
    reply = json_object(text, "table")
    columns = reply.get("columns")
    problems = [name for name in ("name", "description") if not isinstance(reply.get(name), str) or not reply[name].strip()]
    found = {}
    for column in columns if isinstance(columns, list) else ():
        if isinstance(column, dict) and column.get("type") in COLUMN_TYPES and isinstance(column.get("description"), str):
            found[column.get("name")] = column
    problems += [f"column {attribute}" for attribute in attributes if attribute not in found]
    if problems:
        raise ReplyError(f"table reply: {', '.join(problems)} missing or of the wrong type in {text[:300]!r}")
    return TableReply(
        reply["name"].strip(),
        reply["description"].strip(),
        tuple(found[attribute]["type"] for attribute in attributes),
        tuple(found[attribute]["description"].strip() for attribute in attributes),
    )


# Describe: an episode or a topic of the hierarchy (Appendix A)


@dataclass(frozen=True)
class DescribeInputs:
    """What is described: an episode's events, or a topic's episode descriptions, in order of time."""

    level: Literal["episode", "topic"]
    parts: tuple[str, ...]


def describe_request(inputs: DescribeInputs) -> Request:
    """Ask for a description; the reply is plain text."""
    listed = "\n\n".join(f"{number}. {part}" for number, part in enumerate(inputs.parts, start=1))
    what = "Events of one episode" if inputs.level == "episode" else "Episodes of one topic"
    return task_request("build", "describe", inputs, [TextPart(f"{what}:\n\n{listed}")])


def parse_describe(text: str) -> str:
    """The description without surrounding space; raises `ReplyError` where there is none."""
    if not text.strip():
        raise ReplyError("describe reply is empty")
    return text.strip()
