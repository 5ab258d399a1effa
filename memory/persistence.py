"""One built part of a memory on disk: a folder with a name of its own, a manifest, and the hash of every file.

A folder is built aside in the same root and renamed, so a folder with a bank's name is complete or damaged, never
half-built. Nothing is read before it is checked against the manifest.
"""

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from numpy.typing import NDArray

from memory.errors import BankError, damaged
from memory.identity import BankIdentity

logger = logging.getLogger(__name__)

_ASIDE = ".building-"
_MANIFEST = "manifest.json"


def build_once(root: Path, identity: BankIdentity, make: Callable[[Path], None]) -> None:
    """Have ``make`` fill a new folder, unless the folder of that name exists; another process that builds it is waited for.

    The manifest is written last and the folder then renamed to its name; nothing is left of a building that fails.
    """
    if (root / identity.folder_name).exists():
        return
    with _sole_builder(root, identity):
        if not (root / identity.folder_name).exists():  # another process may have built it meanwhile
            with _folder_aside(root, identity) as folder:
                make(folder)
                manifest = {**asdict(identity), "fingerprint": identity.fingerprint, "files": _file_hashes(folder)}
                (folder / _MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="utf-8")


@contextmanager
def _sole_builder(root: Path, identity: BankIdentity) -> Iterator[None]:
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
def _folder_aside(root: Path, identity: BankIdentity) -> Iterator[Path]:
    """A new folder to build in, renamed to its final name at the end; removed if the building fails."""
    aside = Path(tempfile.mkdtemp(prefix=f".{identity.folder_name}{_ASIDE}", dir=root))
    try:
        aside.chmod(0o755)
        yield aside
        aside.rename(root / identity.folder_name)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def check_folder(root: Path, identity: BankIdentity) -> Path:
    """The folder, after it was checked to hold what the identity says and to be unchanged since it was written.

    Raises:
        BankError: it is missing, damaged, or of something else; the message says what to do.
    """
    folder = root / identity.folder_name
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
            f"{path}: the bank was built from something else: {', '.join(differing)} differ "
            f"(format version {identity.format_version} is needed); remove the folder and build the bank again"
        )
    hashes = _file_hashes(folder)
    if manifest.get("files") != hashes:
        listed = manifest["files"] if isinstance(manifest.get("files"), dict) else {}
        wrong = sorted(name for name in {*listed, *hashes} if listed.get(name) != hashes.get(name))
        raise damaged(folder, f"missing, changed or added: {', '.join(wrong)}")
    return folder


def _file_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 (hex) of every file but the manifest, by path relative to the folder; links are not followed."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file()]
    hashes = {}
    for path in files:
        content = b"a link" if path.is_symlink() else path.read_bytes()
        hashes[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    hashes.pop(_MANIFEST, None)
    return hashes


def save_vectors(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write (n, d) vectors as little-endian float32."""
    np.save(path, vectors.astype("<f4"), allow_pickle=False)


def load_vectors(path: Path, n: int) -> NDArray[np.float32]:
    """Read (n, d) float32 vectors, read-only; raises `BankError` if the file holds anything else."""
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    if vectors.ndim != 2 or vectors.shape[0] != n or vectors.dtype != np.float32 or not np.isfinite(vectors).all():
        raise damaged(path, f"expected {n} finite float32 vectors, found {vectors.dtype} of shape {vectors.shape}")
    vectors.setflags(write=False)
    return np.asarray(vectors, np.float32)
