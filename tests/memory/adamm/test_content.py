"""Tests of AdaMM's memory on disk: damage, foreign and forged content."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import duckdb
import numpy as np
import pytest

from memory.adamm.build import open_adamm
from memory.adamm.database import DATABASE
from memory.adamm.model import AdaMMMemory
from memory.errors import BankError
from memory.identity import identify
from tests.memory.adamm.fakes import SETTINGS, LabelModel, build, history
from tests.memory.adamm.test_build import FIRST, SECOND
from tests.memory.fakes import sign

OF = history(FIRST, SECOND)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a memory, by path under the root."""
    folder = tmp_path_factory.mktemp("built")
    root = build(OF, folder, LabelModel()).folder.parent
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def folder(built: dict[str, bytes], tmp_path: Path) -> Path:
    """A copy of the memory's folder."""
    for name, content in built.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return next(path for path in tmp_path.iterdir() if path.is_dir())


def opened(folder: Path) -> AdaMMMemory:
    return open_adamm(folder.parent, OF, identify("adamm", OF, settings=asdict(SETTINGS), encoder_id="hash-16", model_id="labels"))


def test_files(folder: Path) -> None:
    levels = [f"{level}_{kind}.npy" for level in ("episode", "event", "topic") for kind in ("text", "visual")]
    assert sorted(path.name for path in folder.iterdir()) == [DATABASE, *levels[:4], "manifest.json", "table_vectors.npy", *levels[4:]]
    assert folder.name.startswith("health-adamm-")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["part"], manifest["encoder_id"], manifest["image_encoder_id"], manifest["reader_id"]) == ("adamm", "hash-16", "", "")
    assert manifest["settings"]["min_support"] == 4
    assert (folder / DATABASE).stat().st_size < 600_000  # 256 KiB blocks would take megabytes


def test_arrays_are_read_only(folder: Path) -> None:
    memory = opened(folder)
    arrays = [memory.table_vectors, *(array for vectors in memory.vectors.values() for array in vars(vectors).values())]
    for array in arrays:
        assert not array.flags.writeable


def _remove(path: Path) -> None:
    path.unlink()


def _flip_last_byte(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize("harm", [_remove, _flip_last_byte])
@pytest.mark.parametrize("name", [DATABASE, "table_vectors.npy", "event_text.npy", "topic_visual.npy"])
def test_a_damaged_file_is_named(folder: Path, name: str, harm: Callable[[Path], None]) -> None:
    harm(folder / name)
    with pytest.raises(BankError, match=rf"damaged memory bank \(missing, changed or added: {name}\); remove the bank's folder and build"):
        opened(folder)


def test_not_a_database(folder: Path) -> None:
    (folder / DATABASE).write_bytes(os.urandom(5000))
    sign(folder)
    with pytest.raises(BankError, match=rf"{DATABASE}: damaged memory bank"):
        opened(folder)


@pytest.mark.parametrize(
    ("name", "vectors"),
    [
        ("table_vectors.npy", np.zeros((2, 16), np.float32)),
        ("event_text.npy", np.zeros((6, 16))),
        ("episode_visual.npy", np.full((6, 16), np.nan, np.float32)),
        ("topic_text.npy", np.array([{}], object)),
    ],
)
def test_forged_vectors_are_refused(folder: Path, name: str, vectors: np.ndarray) -> None:
    np.save(folder / name, vectors, allow_pickle=True)
    sign(folder)
    with pytest.raises(BankError, match=rf"{name}: damaged memory bank"):
        opened(folder)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE rounds SET round_id = 'other' WHERE round_order = 2", "the rounds are not the history's"),
        ("UPDATE rounds SET session_id = 'S9' WHERE round_order = 2", "the rounds are not the history's"),
        ("DELETE FROM rounds WHERE round_order = 5", "the rounds are not the history's"),
        ("UPDATE tables SET position = 7", "tables are not numbered"),
        ("INSERT INTO tables VALUES (1, 'LOG_of_pulse', 'x', 4, 1)", "names of tables are not unique"),
        ("INSERT INTO tables VALUES (1, 'other', 'x', 4, 1)", r"the induced tables are \['log_of_pulse'\]"),
        ("UPDATE tables SET n_rows = 5", "does not have 5 rows"),
        ("UPDATE columns SET name = 'Time' WHERE name = 'sleep'", "names of columns are not unique"),
        ("UPDATE columns SET name = 'PULSE' WHERE name = 'sleep'", "names of columns are not unique"),
        ("UPDATE columns SET name = 'other' WHERE name = 'sleep'", "table log_of_pulse has other columns"),
        ("UPDATE columns SET table_name = 'x'", "a column belongs to no table"),
        ("UPDATE columns SET type = 'json'", "a column has an unknown type"),
        ("UPDATE columns SET type = 'date'", "table log_of_pulse has other columns"),
        ("UPDATE columns SET description = NULL", "columns.description is NULL in a row"),
        ("UPDATE columns SET samples = [NULL]", "columns.samples is NULL in a row"),
        ("UPDATE schema_events SET kind = 'x'", "a schema event is of no round or of an unknown kind"),
        ("UPDATE schema_events SET round_order = 6", "a schema event is of no round or of an unknown kind"),
        ("UPDATE nodes SET level = 'x' WHERE level = 'topic'", "a node is of an unknown level"),
        ("DELETE FROM nodes WHERE level = 'episode' AND index = 0", "nodes are not numbered"),
        ("UPDATE nodes SET rounds = [1] WHERE level = 'event' AND index = 0", "an event is not a round"),
        ("UPDATE nodes SET parent = 3 WHERE level = 'event' AND index = 0", "parents and children do not agree"),
        ("UPDATE nodes SET children = [99] WHERE level = 'topic' AND index = 0", "parents and children do not agree"),
        ("UPDATE nodes SET children = [1] WHERE level = 'topic' AND index = 0", "parents and children do not agree"),
        ("UPDATE nodes SET rounds = [-1] WHERE level = 'topic'", "a node covers an unknown round"),
        ("UPDATE nodes SET image_ids = ['x']", "a node has an unknown image"),
        ("INSERT INTO counts VALUES ('rounds', 1)", "names of counts are not unique"),
        ("ALTER TABLE counts ALTER value TYPE VARCHAR; UPDATE counts SET value = 'x'", "Could not convert"),
        ("UPDATE observations SET round_order = 6", "an observation is of no round"),
        ("UPDATE observations SET position = 0", "an observation is there twice"),
        ("UPDATE observations SET quote = ''", "an observation has two pointers or none"),
        ("UPDATE observations SET image_id = 'x'", "an observation has two pointers or none"),
        ("UPDATE observations SET image_id = 'x', quote = ''", "an observation has an unknown image"),
        ("UPDATE cells SET column_name = 'x'", "a cell belongs to no column"),
        ("UPDATE cells SET position = 9", "a cell belongs to no observation"),
        ("UPDATE induced.log_of_pulse SET source = 'S1:9' WHERE round_order = 1", "does not have 4 rows of rounds of the history"),
        ("UPDATE induced.log_of_pulse SET round_order = 0, source = 'S1:1'", "does not have 4 rows of rounds of the history"),
        ("ALTER TABLE induced.log_of_pulse ALTER pulse TYPE VARCHAR", "table log_of_pulse has other columns"),
        (
            "ALTER TABLE induced.log_of_pulse RENAME TO other; CREATE VIEW induced.log_of_pulse AS FROM induced.other",
            "the induced tables are",
        ),
        ("CREATE TABLE induced.more (x INTEGER)", "the induced tables are"),
        ("DROP TABLE cells", "cells does not exist"),
    ],
)
def test_forged_rows_are_refused(folder: Path, statement: str, problem: str) -> None:
    with duckdb.connect(str(folder / DATABASE)) as database:
        database.execute(statement)
    sign(folder)
    with pytest.raises(BankError, match=rf"(?s)damaged memory bank.*{problem}.*remove the bank's folder"):
        opened(folder)


def test_the_memory_of_another_history_is_refused(folder: Path) -> None:
    other = history(FIRST)
    identity = identify("adamm", OF, settings=asdict(SETTINGS), encoder_id="hash-16", model_id="labels")
    with pytest.raises(BankError, match="the rounds are not the history's"):
        open_adamm(folder.parent, other, identity)
