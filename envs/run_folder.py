"""A run's folder: what is where in it, which run is the newest, and that only one process trains in it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from data.splits import Split
from envs.errors import RunError
from envs.settings import Settings

RUNS = Path("outputs")
CHECKPOINTS = "checkpoints"
SELECTOR, PLANNER = "selector", "planner"
"""The folders of the two exports."""
LEDGER = "ledger.jsonl"
SETTINGS, MANIFEST, SPLIT = "settings.json", "manifest.json", "split.json"
_LOCK = ".lock"


@contextmanager
def sole_run(folder: Path) -> Iterator[None]:
    """Keep every other ``train.py`` out of a run's folder; the operating system lets go when the process ends, however it ends.

    Raises:
        RunError: another process trains in this folder.
    """
    lock = FileLock(folder / _LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise RunError(f"another train.py is at work in {folder}; wait for its end, or give another folder with hydra.run.dir") from error
    try:
        yield
    finally:
        lock.release()


def newest_run() -> Path:
    """The newest run of ``train.py`` that has exported a policy.

    Raises:
        RunError: there is none.
    """
    exports = [path for name in (SELECTOR, PLANNER) for path in RUNS.rglob(f"{name}/{name}.json")]
    if not exports:
        raise RunError(f"{RUNS} holds no finished run; train one with python train.py, or name one with run=PATH")
    return max(exports, key=lambda path: path.stat().st_mtime).parents[1]


def stored_settings(run: Path) -> dict[str, Any]:
    """The settings that a run of ``train.py`` left in its folder.

    Raises:
        RunError: the folder has none.
    """
    path = run / SETTINGS
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        Settings.model_validate(values)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} does not hold a run's settings; run= must name the folder of a run of train.py ({error})") from error
    assert isinstance(values, dict)
    return values


def stored_data_hash(run: Path) -> str:
    """The content hash of the data that a run was trained on."""
    return str(json.loads((run / MANIFEST).read_text(encoding="utf-8"))["data_hash"])


def split_of_run(folder: Path) -> Split | None:
    """The split that a run stored in its folder, if it got that far."""
    path = folder / SPLIT
    return Split.load(path) if path.exists() else None
