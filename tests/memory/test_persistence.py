"""Tests of banks on disk: damage, foreign content, and the locked-down connection."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import duckdb
import numpy as np
import pytest

from data.history import History
from memory.bank import MemoryBank
from memory.build import open_bank
from memory.duckdb_file import READ_ONLY
from memory.errors import BankError
from memory.identity import BankIdentity, identify
from tests.memory.fakes import SETTINGS, KeywordModel, build, sign, two_sessions


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A small history with one image."""
    return two_sessions(tmp_path)


@pytest.fixture
def bank(history: History, tmp_path: Path) -> MemoryBank:
    """Its bank."""
    return build(history, tmp_path / "banks", KeywordModel())


def _open(history: History, bank: MemoryBank) -> MemoryBank:
    return open_bank(bank.folder.parent, history, _identity(history))


def _identity(history: History, model_id: str = "keywords") -> BankIdentity:
    return identify("hive", history, settings=asdict(SETTINGS), encoder_id="hash-16", model_id=model_id)


def test_files(bank: MemoryBank) -> None:
    assert sorted(path.relative_to(bank.folder).as_posix() for path in bank.folder.rglob("*") if path.is_file()) == [
        "anchor_vectors.npy", "bank.duckdb", "crops/00000.png", "manifest.json", "summary_vectors.npy",
    ]  # fmt: skip
    manifest = json.loads((bank.folder / "manifest.json").read_text())
    assert bank.folder.name.endswith(manifest["fingerprint"][:16])
    assert (manifest["encoder_id"], manifest["model_id"], manifest["format_version"]) == ("hash-16", "keywords", 1)
    assert manifest["settings"]["k_edge"] == 4
    assert (bank.folder / "bank.duckdb").stat().st_size < 300_000  # 264 KiB blocks would take megabytes


def test_arrays_are_read_only(bank: MemoryBank) -> None:
    for array in (bank.summary_vectors, bank.anchor_vectors, bank.anchor_idf):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def _remove(path: Path) -> None:
    path.unlink()


def _flip_last_byte(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize("harm", [_remove, _flip_last_byte])
@pytest.mark.parametrize("name", ["bank.duckdb", "summary_vectors.npy", "anchor_vectors.npy", "crops/00000.png"])
def test_a_damaged_file_is_named(history: History, bank: MemoryBank, name: str, harm: Callable[[Path], None]) -> None:
    harm(bank.folder / name)
    with pytest.raises(
        BankError, match=rf"damaged memory bank \(missing, changed or added: {name}\); remove the bank's folder and build it again"
    ):
        _open(history, bank)


def test_an_added_file_or_link_is_found(history: History, bank: MemoryBank) -> None:
    (bank.folder / "crops" / "extra.png").symlink_to("/etc/hostname")
    with pytest.raises(BankError, match=r"changed or added: crops/extra.png"):
        _open(history, bank)


def test_a_link_to_the_right_content_is_still_refused(history: History, bank: MemoryBank, tmp_path: Path) -> None:
    (bank.folder / "bank.duckdb").rename(tmp_path / "elsewhere.duckdb")
    (bank.folder / "bank.duckdb").symlink_to(tmp_path / "elsewhere.duckdb")
    with pytest.raises(BankError, match=r"changed or added: bank.duckdb"):
        _open(history, bank)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"files": 3}'])
def test_a_broken_manifest(history: History, bank: MemoryBank, text: str) -> None:
    (bank.folder / "manifest.json").write_text(text)
    with pytest.raises(BankError, match=r"manifest.json: .*build"):
        _open(history, bank)


def test_a_missing_bank(history: History, bank: MemoryBank, tmp_path: Path) -> None:
    identity = _identity(history, "another")
    with pytest.raises(BankError, match="no memory bank"):
        open_bank(tmp_path / "banks", history, identity)
    (bank.folder / "manifest.json").unlink()
    with pytest.raises(BankError, match="no memory bank"):
        _open(history, bank)


@pytest.mark.parametrize(("field", "value"), [("format_version", 0), ("history_hash", "x"), ("encoder_id", "other"), ("model_id", "other")])
def test_a_foreign_bank(history: History, bank: MemoryBank, field: str, value: object) -> None:
    path = bank.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(BankError, match=rf"built from something else: {field} differ.*build the bank again"):
        _open(history, bank)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE images SET view = '../../../a.png' WHERE view IS NOT NULL", "view files outside crops/ or missing"),
        ("UPDATE images SET view = '/etc/hostname' WHERE view IS NOT NULL", "view files outside crops/ or missing"),
        ("UPDATE images SET view = '00001.png' WHERE view IS NOT NULL", "view files outside crops/ or missing"),
        ("UPDATE images SET image_id = 'other'", "an image is not in the history"),
        ("UPDATE edges SET j = 99", "an edge is not"),
        ("UPDATE edges SET weight = 0", "an edge is not"),
        ("UPDATE rounds SET episode = 99", "a row belongs to no episode"),
        ("DELETE FROM episodes WHERE episode = 1", "episodes are not numbered"),
        ("DELETE FROM anchors WHERE anchor = 'paddle'", "an episode has an unknown anchor"),
        ("INSERT INTO anchors VALUES ('paddle', 'x', 0)", "the anchors are not unique"),
        ("DROP TABLE edges", "edges does not exist"),
    ],
)
def test_forged_rows_are_refused(history: History, bank: MemoryBank, statement: str, problem: str) -> None:
    with duckdb.connect(str(bank.folder / "bank.duckdb")) as database:
        database.execute(statement)
    sign(bank.folder)
    with pytest.raises(BankError, match=rf"(?s)damaged memory bank.*{problem}"):
        _open(history, bank)


def test_forged_vectors_are_refused(history: History, bank: MemoryBank) -> None:
    path = bank.folder / "summary_vectors.npy"
    for vectors in (np.zeros((2, 16), np.float32), np.zeros((3, 16)), np.full((3, 16), np.nan, np.float32), np.array([{}], object)):
        np.save(path, vectors, allow_pickle=True)
        sign(bank.folder)
        with pytest.raises(BankError, match=r"summary_vectors.npy: damaged memory bank"):
            _open(history, bank)


def test_not_a_database(history: History, bank: MemoryBank) -> None:
    (bank.folder / "bank.duckdb").write_bytes(os.urandom(5000))
    sign(bank.folder)
    with pytest.raises(BankError, match=r"bank.duckdb: damaged memory bank"):
        _open(history, bank)


def test_the_connection_is_locked_down(bank: MemoryBank) -> None:
    with duckdb.connect(str(bank.folder / "bank.duckdb"), read_only=True, config=READ_ONLY) as database:
        with pytest.raises(duckdb.PermissionException):
            database.execute("SELECT * FROM read_text('/etc/hostname')")
        with pytest.raises(duckdb.InvalidInputException, match="locked"):
            database.execute("SET temp_directory = '/tmp'")
        with pytest.raises(duckdb.InvalidInputException, match="read-only"):
            database.execute("DELETE FROM episodes")
        values = dict(
            database.execute("SELECT name, value FROM duckdb_settings() WHERE name IN ('temp_directory', 'async_threads')").fetchall()
        )
        assert values == {"temp_directory": "", "async_threads": "0"}
