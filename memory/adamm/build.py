"""Building AdaMM's memory of one history: the whole order of construction on one page (AdaMM, §3.3, Appendix A)."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from data.history import History
from memory.adamm.content import AdaMMContent, read_metadata, write_content
from memory.adamm.database import DATABASE
from memory.adamm.extraction import RoundContent, extract, read_rounds
from memory.adamm.hierarchy import MAX_WORDPIECES, EventContent, build_hierarchy
from memory.adamm.induction import induce
from memory.adamm.model import LEVELS, AdaMMMemory, NodeVectors
from memory.adamm.settings import AdaMMSettings
from memory.adamm.tables import FilledTable, by_round, materialise
from memory.asking import Generate, Progress, check_images
from memory.errors import BankError
from memory.hive.episodes import round_text
from memory.identity import BankIdentity, identify
from memory.persistence import build_once, check_folder, load_vectors, save_vectors
from models.embedded.ocr import TextReader
from models.encoders.types import ImageEncoder, TextEncoder
from models.requests import TokenCounter
from models.tasks.adamm import DescribeInputs, describe_request, parse_describe

_TABLE_VECTORS = "table_vectors.npy"


def build_adamm(
    history: History,
    *,
    root: Path,
    generate: Generate,
    text_encoder: TextEncoder,
    image_encoder: ImageEncoder | None,
    counter: TokenCounter,
    settings: AdaMMSettings,
    model_id: str,
    progress: Progress,
    reader: TextReader | None = None,
) -> AdaMMMemory:
    """Build AdaMM's memory of a history, or open it if it was built from the same content before.

    A build is always a full pass over the history. What a longer history shares with an earlier one costs nothing: its model calls and
    vectors are found in the caches.

    Args:
        history: what to remember.
        root: the folder of all banks; the memory gets a folder of its own in it.
        generate: answers model requests, in order; asked for nothing when the memory exists.
        text_encoder: embeds events, descriptions and tables' metadata.
        image_encoder: embeds images; None leaves the visual side out. A `TextImageEncoder` makes images searchable by words.
        counter: MiniLM's WordPiece counter, for counting the texts that it would cut.
        settings: how to build.
        model_id: names the model behind ``generate``.
        progress: told how far the building is.
        reader: reads pictures, to count the values that the model saw in an image and the reader did not; None counts none.

    Raises:
        data.errors.ImageError: image files that cannot be used, all of them at once.
        models.errors.ReplyError: replies that are not what was asked for, all of one step at once.
        models.errors.BackendError: a model call failed.
        memory.errors.BankError: the history is empty, or the memory that exists is damaged.
    """
    check_images(history)
    identity = identify(
        "adamm",
        history,
        settings=asdict(settings),
        encoder_id=text_encoder.id,
        image_encoder_id="" if image_encoder is None else image_encoder.id,
        reader_id="" if reader is None else reader.version,
        model_id=model_id,
    )

    def make(folder: Path) -> None:
        rounds = read_rounds(history, captions=settings.captions, generate=generate, progress=progress)
        if not rounds:
            raise BankError(f"history {history.id!r} has no rounds to remember; remove it from the dataset")
        extraction = extract(rounds, generate=generate, reader=reader, progress=progress)
        observed = by_round(extraction.observations, len(rounds))
        induction = induce(
            [frozenset(observations) for observations in observed],
            min_support=settings.min_support,
            min_all_conf=settings.min_all_conf,
            min_ext_conf=settings.min_ext_conf,
            max_tested=settings.max_tested,
        )
        tables = materialise(induction.schemas, observed, generate=generate, progress=progress)
        hierarchy = build_hierarchy(
            [_event(content) for content in rounds],
            settings=settings,
            describe=_describer(generate, len(rounds), progress),
            text_encoder=text_encoder,
            image_encoder=image_encoder,
            count_tokens=counter.count_text,
        )
        progress("descriptions", len(rounds), len(rounds))
        metadata = [filled.table.metadata for filled in tables]
        truncated = sum(counter.count_text(text) > MAX_WORDPIECES for text in metadata)
        counts = {**_counts(rounds, tables), "tables_truncated": truncated, **extraction.counts, **hierarchy.counts}
        content = AdaMMContent(rounds, extraction.observations, tables, induction.events, hierarchy.nodes, counts)
        write_content(folder / DATABASE, content)
        save_vectors(folder / _TABLE_VECTORS, text_encoder.encode(metadata))
        for level, vectors in hierarchy.vectors.items():
            save_vectors(folder / f"{level}_text.npy", vectors.text)
            save_vectors(folder / f"{level}_visual.npy", vectors.visual)

    build_once(root, identity, make)
    return open_adamm(root, history, identity)


def open_adamm(root: Path, history: History, identity: BankIdentity) -> AdaMMMemory:
    """Open AdaMM's memory of a history; the rows of its tables stay in the database.

    Args:
        root: the folder of all banks.
        history: what the memory must be of.
        identity: what the memory must have been built from.

    Raises:
        memory.errors.BankError: the memory is missing, damaged, or of something else; the message says what to do.
    """
    folder = check_folder(root, identity)
    found = read_metadata(folder / DATABASE, history)
    vectors = {}
    for level in LEVELS:
        n = len(found.nodes[level])
        visual = load_vectors(folder / f"{level}_visual.npy", n)
        has_visual = np.asarray(visual.any(axis=1))  # a vector is zero where there is none
        has_visual.setflags(write=False)
        vectors[level] = NodeVectors(load_vectors(folder / f"{level}_text.npy", n), visual, has_visual)
    return AdaMMMemory(
        history_id=history.id,
        folder=folder,
        text_encoder_id=identity.encoder_id,
        image_encoder_id=identity.image_encoder_id,
        round_ids=tuple(round_.id for round_ in history.rounds),
        round_sessions=tuple(session.id for session in history.sessions for _ in session.rounds),
        tables=found.tables,
        table_vectors=load_vectors(folder / _TABLE_VECTORS, len(found.tables)),
        nodes=found.nodes,
        vectors=vectors,
        schema_events=found.schema_events,
        counts=found.counts,
    )


def _event(content: RoundContent) -> EventContent:
    return EventContent(
        round_order=content.order,
        session_id=content.session_id,
        date=content.date,
        text=round_text(replace(content.round, images=())),
        captions=content.captions,
        pictures=tuple(image.picture for image in content.images if image.picture is not None),
        image_ids=tuple(image.image_id for image in content.images),
    )


def _describer(generate: Generate, n_events: int, progress: Progress) -> Callable[[DescribeInputs], str]:
    """Asks for one description at a time, for the next request depends on it; an episode is described once an event."""
    n_described = 0

    def describe(inputs: DescribeInputs) -> str:
        nonlocal n_described
        progress("descriptions", n_described, n_events)
        n_described += inputs.level == "episode"
        return parse_describe(generate([describe_request(inputs)])[0].text)

    return describe


def _counts(rounds: Sequence[RoundContent], tables: Sequence[FilledTable]) -> dict[str, int]:
    images = [image for content in rounds for image in content.images]
    cells = [cell for filled in tables for cell in filled.cells if cell.filled]
    return {
        "rounds": len(rounds),
        "images": len(images),
        "images_missing": sum(image.picture is None for image in images),
        "captions_absent": len(images) - sum(len(content.captions) for content in rounds),
        "tables": len(tables),
        "rows": sum(filled.table.n_rows for filled in tables),
        "cells": len(cells),
        "cells_unusable": sum(not cell.usable for cell in cells),
    }
