"""The document that describes an exported selector: its JSON Schema, and reading it with every problem reported at once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from policies.errors import ArtefactError

# The schema checks that a value really is one of these (JSON itself cannot carry anything else).
Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

FORMAT = "evidence-gym-selector"
FORMAT_VERSION = 1
DOCUMENT_NAME = "selector.json"
SCHEMA_NAME = "selector.schema.json"
ONNX_NAME = "selector.onnx"
WEIGHTS_NAME = "selector.safetensors"
MAX_DOCUMENT_BYTES = 1_000_000

_FILE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["bytes", "sha256"],
    "properties": {
        "bytes": {"type": "integer", "minimum": 1, "maximum": 2_000_000_000},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    },
}

DOCUMENT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Exported evidence selector",
    "type": "object",
    "additionalProperties": False,
    "required": ["format", "format_version", "forms", "threshold", "encoder", "metric_profile", "network", "files", "parity", "provenance"],
    "properties": {
        "format": {"const": FORMAT},
        "format_version": {"const": FORMAT_VERSION},
        "forms": {
            "description": "Evidence forms in the order of the logits' last axis.",
            "type": "array",
            "minItems": 1,
            "maxItems": 64,
            "uniqueItems": True,
            "items": {"type": "string", "minLength": 1, "maxLength": 100},
        },
        "threshold": {
            "description": "A form is selected when its probability exceeds this.",
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
        },
        "encoder": {
            "description": "Encoder whose unit-norm vectors the selector reads.",
            "type": "object",
            "additionalProperties": False,
            "required": ["id", "dimension"],
            "properties": {
                "id": {"type": "string", "minLength": 1, "maxLength": 500},
                "dimension": {"type": "integer", "minimum": 1, "maximum": 65_536},
            },
        },
        "metric_profile": {
            "description": "Metric profile of the answer reward it was trained with.",
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
        },
        "network": {
            "type": "object",
            "additionalProperties": False,
            "required": ["hidden_sizes", "activation", "input_scale"],
            "properties": {
                "hidden_sizes": {"type": "array", "minItems": 1, "maxItems": 16, "items": {"type": "integer", "minimum": 1}},
                "activation": {"enum": ["relu", "tanh"]},
                "input_scale": {"type": "number", "exclusiveMinimum": 0},
            },
        },
        "files": {
            "type": "object",
            "additionalProperties": False,
            "required": [ONNX_NAME, WEIGHTS_NAME],
            "properties": {ONNX_NAME: _FILE_SCHEMA, WEIGHTS_NAME: _FILE_SCHEMA},
        },
        "parity": {
            "description": "Largest |onnx - torch| / max(1, |logit|) found at export, over this many logits.",
            "type": "object",
            "additionalProperties": False,
            "required": ["largest_error", "tolerance", "logits"],
            "properties": {
                "largest_error": {"type": "number", "minimum": 0},
                "tolerance": {"type": "number", "exclusiveMinimum": 0},
                "logits": {"type": "integer", "minimum": 1},
            },
        },
        "provenance": {"description": "How it was trained: free JSON values by name.", "type": "object"},
    },
}


@dataclass(frozen=True, kw_only=True)
class FileRecord:
    """Size in bytes and SHA-256 (hex) of one file of the artefact."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class EncoderRecord:
    """Id and vector length of the encoder."""

    id: str
    dimension: int


@dataclass(frozen=True, kw_only=True)
class NetworkRecord:
    """Layer widths, activation (``relu`` or ``tanh``) and input factor of the network."""

    hidden_sizes: tuple[int, ...]
    activation: str
    input_scale: float


@dataclass(frozen=True, kw_only=True)
class ParityRecord:
    """Result of comparing ONNX with torch: largest relative error, its tolerance, and how many logits were compared."""

    largest_error: float
    tolerance: float
    logits: int


@dataclass(frozen=True, kw_only=True)
class SelectorDocument:
    """What ``selector.json`` says; see `DOCUMENT_SCHEMA` for each field."""

    forms: tuple[str, ...]
    threshold: float
    encoder: EncoderRecord
    metric_profile: str
    network: NetworkRecord
    files: dict[str, FileRecord]
    parity: ParityRecord
    provenance: dict[str, Json]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document, checked against the schema.

        Raises:
            ArtefactError: If a value does not fit.
        """
        document = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
        try:
            plain: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ArtefactError(f"the selector's document holds a value that JSON cannot: {error}") from error
        check_document(plain, source="the selector's document")
        return plain


def document_from_json(document: dict[str, Any], *, source: str) -> SelectorDocument:
    """Build the record from a parsed document.

    Raises:
        ArtefactError: If a field is missing or cannot be used.
    """
    try:
        network = document["network"]
        record = SelectorDocument(
            forms=tuple(str(form) for form in document["forms"]),
            threshold=float(document["threshold"]),
            encoder=EncoderRecord(id=str(document["encoder"]["id"]), dimension=int(document["encoder"]["dimension"])),
            metric_profile=str(document["metric_profile"]),
            network=NetworkRecord(
                hidden_sizes=tuple(int(size) for size in network["hidden_sizes"]),
                activation=str(network["activation"]),
                input_scale=float(network["input_scale"]),
            ),
            files={
                name: FileRecord(bytes=int(document["files"][name]["bytes"]), sha256=str(document["files"][name]["sha256"]))
                for name in (ONNX_NAME, WEIGHTS_NAME)
            },
            parity=ParityRecord(**document["parity"]),
            provenance=dict(document["provenance"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArtefactError(f"{source} does not describe a selector: {error!r}; copy the exported folder again") from error
    if not (0 < record.threshold < 1 and record.forms and record.encoder.dimension > 0):
        raise ArtefactError(f"{source} does not describe a selector: threshold, forms or encoder dimension out of range")
    return record


def check_document(document: object, *, source: str) -> None:
    """Check a parsed document against the schema.

    Args:
        document: Any JSON value.
        source: Where it came from, for the message.

    Raises:
        ArtefactError: With every violation, each by field.
    """
    if isinstance(document, dict) and document.get("format") == FORMAT and document.get("format_version") != FORMAT_VERSION:
        raise ArtefactError(
            f"{source}: format_version is {document.get('format_version')!r}, this program reads {FORMAT_VERSION}; "
            "export the selector again with this version"
        )
    try:
        from jsonschema import Draft202012Validator
    except ModuleNotFoundError:  # an agent that only selects need not have it; `document_from_json` still refuses what it cannot use
        return
    violations = sorted(Draft202012Validator(DOCUMENT_SCHEMA).iter_errors(document), key=lambda found: found.json_path)
    if violations:
        lines = "; ".join(f"{found.json_path}: {found.message[:200]}" for found in violations)
        raise ArtefactError(f"{source} does not describe a selector: {lines}")


def read_document(folder: Path) -> SelectorDocument:
    """Read and check ``selector.json`` of an exported selector.

    Raises:
        ArtefactError: If it is missing, too large, not JSON or does not fit the schema.
    """
    path = folder / DOCUMENT_NAME
    data = read_limited(path, limit=MAX_DOCUMENT_BYTES)
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise ArtefactError(f"{path} is not a JSON document ({error}); copy the exported folder again") from error
    check_document(document, source=str(path))
    return document_from_json(document, source=str(path))


def read_limited(path: Path, *, limit: int) -> bytes:
    """Return a file's bytes if there are at most ``limit``.

    Raises:
        ArtefactError: If the file cannot be read or is larger.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ArtefactError(f"{path} cannot be read ({error.strerror}); give the folder that the export wrote") from error
    if len(data) > limit:
        raise ArtefactError(f"{path} is larger than the {limit} bytes it may have; copy the exported folder again")
    return data


def read_recorded(folder: Path, name: str, record: FileRecord) -> bytes:
    """Return the bytes of an artefact's file after comparing them with the document.

    Raises:
        ArtefactError: If the file is missing, or its size or hash differs.
    """
    data = read_limited(folder / name, limit=record.bytes)
    if len(data) != record.bytes or hashlib.sha256(data).hexdigest() != record.sha256:
        raise ArtefactError(f"{folder / name} is not the file that {DOCUMENT_NAME} describes; copy the exported folder again")
    return data


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
