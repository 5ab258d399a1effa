"""A bank on disk: one folder with a DuckDB file, vectors, crops and a manifest.

A bank is written aside in the same root and renamed, so a folder with a bank's name is complete or damaged, never
half-built. The manifest holds the hash of every file; nothing is read before it is checked.
"""

import hashlib
import json
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from numpy.typing import NDArray

from data.history import History, history_hash
from memory.bank import MemoryBank
from memory.bank_tables import CROPS, BankContent, read_content, write_content
from memory.errors import BankError, damaged
from memory.settings import BankSettings
from models.tasks.base import prompts_hash

logger = logging.getLogger(__name__)

FORMAT_VERSION = 1
_PROMPTS = ("memorise", "caption", "ground")
_ASIDE = ".building-"
_MANIFEST = "manifest.json"
_DATABASE = "bank.duckdb"
_SUMMARY_VECTORS = "summary_vectors.npy"
_ANCHOR_VECTORS = "anchor_vectors.npy"


@dataclass(frozen=True)
class BankIdentity:
    """Everything that a bank's content depends on."""

    history_id: str
    history_hash: str
    settings: BankSettings
    encoder_id: str
    model_id: str
    prompts_hash: str
    format_version: int

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over all fields."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """The bank's folder: a safe form of the history id for people, the fingerprint for certainty."""
        slug = re.sub(r"[^A-Za-z0-9_-]+", "_", self.history_id)[:80]
        return f"{slug}-{self.fingerprint[:16]}"


def identify(history: History, *, settings: BankSettings, encoder_id: str, model_id: str) -> BankIdentity:
    """Name the bank of a history; reads the image files, whose bytes count."""
    return BankIdentity(history.id, history_hash(history), settings, encoder_id, model_id, prompts_hash(*_PROMPTS), FORMAT_VERSION)


@contextmanager
def sole_builder(root: Path, identity: BankIdentity) -> Iterator[None]:
    """Hold the right to build this bank, waiting for another process that does; clean what killed ones left."""
    root.mkdir(parents=True, exist_ok=True)
    lock = _lock_of(root, identity.folder_name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("another process is building %s: waiting for it", root / identity.folder_name)
        lock.acquire()
    try:
        for leftover in sorted(root.glob(f".*{_ASIDE}*")):
            _remove_unless_held(leftover, held=identity.folder_name)
        yield
    finally:
        lock.release()


def _remove_unless_held(leftover: Path, *, held: str) -> None:
    """Remove a folder that was built aside, unless its builder is alive; ``held`` is the bank that we build."""
    name = leftover.name.partition(_ASIDE)[0].removeprefix(".")
    if name == held:
        shutil.rmtree(leftover)
        return
    try:
        with _lock_of(leftover.parent, name).acquire(timeout=0):
            shutil.rmtree(leftover)
    except Timeout:
        logger.info("%s is being built by another process", leftover.parent / name)


def _lock_of(root: Path, folder_name: str) -> BaseFileLock:
    return FileLock(root / f".{folder_name}.lock")


@contextmanager
def folder_aside(root: Path, identity: BankIdentity) -> Iterator[Path]:
    """A new folder to build the bank in, renamed to its final name at the end; removed if the building fails."""
    aside = Path(tempfile.mkdtemp(prefix=f".{identity.folder_name}{_ASIDE}", dir=root))
    try:
        aside.chmod(0o755)
        (aside / CROPS).mkdir()
        yield aside
        aside.rename(root / identity.folder_name)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def write_bank(
    folder: Path, identity: BankIdentity, content: BankContent, *, summary_vectors: NDArray[np.float32], anchor_vectors: NDArray[np.float32]
) -> None:
    """Write everything but the crops, which lie in the folder already; the manifest comes last."""
    write_content(folder / _DATABASE, content)
    np.save(folder / _SUMMARY_VECTORS, summary_vectors.astype("<f4"), allow_pickle=False)
    np.save(folder / _ANCHOR_VECTORS, anchor_vectors.astype("<f4"), allow_pickle=False)
    manifest = {**asdict(identity), "fingerprint": identity.fingerprint, "files": _file_hashes(folder)}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def open_bank(root: Path, history: History, identity: BankIdentity) -> MemoryBank:
    """Open the bank of a history and load all of it.

    Args:
        root: the folder of all banks.
        history: gives the paths of the images; the bank stores ids only.
        identity: what the bank must have been built from.

    Raises:
        BankError: the bank is missing, damaged, or of something else; the message says what to do.
    """
    folder = root / identity.folder_name
    _check_manifest(folder, identity)
    content = read_content(folder / _DATABASE, history)
    idf = np.array(list(content.idf.values()), np.float64)
    idf.setflags(write=False)
    return MemoryBank(
        history_id=history.id,
        folder=folder,
        encoder_id=identity.encoder_id,
        episodes=content.episodes,
        summary_vectors=_load_vectors(folder / _SUMMARY_VECTORS, len(content.episodes)),
        anchors=tuple(content.idf),
        anchor_vectors=_load_vectors(folder / _ANCHOR_VECTORS, len(content.idf)),
        anchor_idf=idf,
        edges=content.edges,
        counts=content.counts,
        visual_visual=identity.settings.visual_visual,
    )


def bank_exists(root: Path, identity: BankIdentity) -> bool:
    """Whether a folder with the bank's name is there."""
    return (root / identity.folder_name).exists()


def _check_manifest(folder: Path, identity: BankIdentity) -> None:
    path = folder / _MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BankError(f"{folder}: no memory bank (no {_MANIFEST}); remove the folder if it exists and build the bank again") from error
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    expected: Mapping[str, Any] = {**asdict(identity), "fingerprint": identity.fingerprint}
    found = {name: manifest.get(name) for name in expected} if isinstance(manifest, dict) else {}
    differing = [name for name in expected if found.get(name) != expected[name]]
    if differing:
        raise BankError(
            f"{path}: the bank was built from something else: {', '.join(differing)} differ (format version {FORMAT_VERSION} is needed); "
            "remove the folder and build the bank again"
        )
    hashes = _file_hashes(folder)
    if manifest.get("files") != hashes:
        listed = manifest["files"] if isinstance(manifest.get("files"), dict) else {}
        wrong = sorted(name for name in {*listed, *hashes} if listed.get(name) != hashes.get(name))
        raise damaged(folder, f"missing, changed or added: {', '.join(wrong)}")


def _file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 (hex) of every file but the manifest, by path relative to the folder; links are not followed."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file()]
    hashes = {}
    for path in files:
        content = b"a link" if path.is_symlink() else path.read_bytes()
        hashes[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    hashes.pop(_MANIFEST, None)
    return hashes


def _load_vectors(path: Path, n: int) -> NDArray[np.float32]:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    if vectors.ndim != 2 or vectors.shape[0] != n or vectors.dtype != np.float32 or not np.isfinite(vectors).all():
        raise damaged(path, f"expected {n} finite float32 vectors, found {vectors.dtype} of shape {vectors.shape}")
    vectors.setflags(write=False)
    return np.asarray(vectors, np.float32)
