"""Builds the memory of every history of a dataset, or opens what was built before: the parts that the settings name."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from data.history import History
from envs.errors import SettingsError
from envs.settings import Settings
from memory.adamm.build import build_adamm
from memory.adamm.model import AdaMMMemory
from memory.bank import MemoryBank
from memory.build import build_bank
from memory.identity import Part
from models.door import Door
from models.embedded.ocr import TextReader
from models.encoders.types import ImageEncoder, TextEncoder
from models.requests import TokenCounter

_NAMES: Mapping[Part, str] = {"hive": "HiVe-Mem's bank", "adamm": "AdaMM's memory"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Memories:
    """HiVe-Mem's banks and AdaMM's memories by history id; empty where the settings do not build them."""

    banks: Mapping[str, MemoryBank]
    adamm: Mapping[str, AdaMMMemory]


def check_parts(settings: Settings, needed: Sequence[Part]) -> None:
    """Raise `SettingsError` if the settings do not build a part of the memory that is needed."""
    if missing := [_NAMES[part] for part in needed if part not in settings.memory.parts]:
        raise SettingsError(
            f"memory.builder={settings.memory.builder} does not build {' and '.join(missing)}, which is needed here: choose memory=both"
        )


def build_memories(
    settings: Settings,
    histories: Sequence[History],
    *,
    door: Door,
    text_encoder: TextEncoder,
    image_encoder: ImageEncoder | None,
    counter: TokenCounter,
    reader: TextReader,
) -> Memories:
    """Build one part of one history after the other, showing how far it is.

    Args:
        settings: Where banks are kept, and what they are built with.
        histories: What to remember.
        door: Answers model requests.
        text_encoder: Embeds texts.
        image_encoder: Embeds images for AdaMM's memory.
        counter: MiniLM's WordPiece counter.
        reader: Reads pictures for AdaMM's memory.
    """
    root, model_id = settings.cache / "banks", door.backend.model_id
    banks: dict[str, MemoryBank] = {}
    adamm: dict[str, AdaMMMemory] = {}
    with _progress() as shown:
        task = shown.add_task("memory", total=len(histories) * len(settings.memory.parts), step="")

        def progress(step: str, done: int, total: int) -> None:
            shown.update(task, step=f"{step} {done}/{total}")

        hive = partial(build_bank, encoder=text_encoder, counter=counter)
        analytic = partial(build_adamm, text_encoder=text_encoder, image_encoder=image_encoder, counter=counter, reader=reader)
        for history in histories:
            if "hive" in settings.memory.parts:
                banks[history.id] = hive(
                    history, root=root, generate=door.generate, settings=settings.memory.bank, model_id=model_id, progress=progress
                )
                logger.debug("bank of %s: %s", history.id, banks[history.id].folder)
                shown.advance(task)
            if "adamm" in settings.memory.parts:
                adamm[history.id] = analytic(
                    history, root=root, generate=door.generate, settings=settings.memory.adamm_memory, model_id=model_id, progress=progress
                )
                logger.debug("AdaMM's memory of %s: %s", history.id, adamm[history.id].folder)
                shown.advance(task)
        shown.update(task, step="")
    return Memories(banks, adamm)


def _progress() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[step]}"),
    )
    return Progress(*columns)
