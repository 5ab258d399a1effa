"""What a part of a memory is built from, as one name: the same content is built once and found again."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from data.history import History, history_hash
from models.tasks.base import prompts_hash

Part = Literal["hive", "adamm"]
"""HiVe-Mem's episodes and graph, or AdaMM's tables and hierarchy: each is built, found and reused by itself."""

_FORMAT_VERSIONS: Mapping[Part, int] = {"hive": 1, "adamm": 1}
_PROMPTS: Mapping[Part, tuple[str, ...]] = {"hive": ("memorise", "caption", "ground"), "adamm": ("caption", "extract", "table", "describe")}


@dataclass(frozen=True)
class BankIdentity:
    """Everything that the content depends on; ids are "" for what has no part in it."""

    part: Part
    history_id: str
    history_hash: str
    settings: Mapping[str, Any]
    encoder_id: str
    image_encoder_id: str
    reader_id: str
    model_id: str
    prompts_hash: str
    format_version: int

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over all fields."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """The folder: a safe form of the history id for people, the part, and the fingerprint for certainty."""
        slug = re.sub(r"[^A-Za-z0-9_-]+", "_", self.history_id)[:80]
        return f"{slug}-{self.part}-{self.fingerprint[:16]}"


def identify(
    part: Part,
    history: History,
    *,
    settings: Mapping[str, Any],
    encoder_id: str,
    model_id: str,
    image_encoder_id: str = "",
    reader_id: str = "",
) -> BankIdentity:
    """Name what is built from a history; reads the image files, whose bytes count."""
    return BankIdentity(
        part=part,
        history_id=history.id,
        history_hash=history_hash(history),
        settings=settings,
        encoder_id=encoder_id,
        image_encoder_id=image_encoder_id,
        reader_id=reader_id,
        model_id=model_id,
        prompts_hash=prompts_hash(*_PROMPTS[part]),
        format_version=_FORMAT_VERSIONS[part],
    )
