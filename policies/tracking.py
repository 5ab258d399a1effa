"""Where metrics go: a JSONL file always, TensorBoard and Weights & Biases on request (the only file that imports wandb)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from policies.artefact import Json
from policies.errors import CheckpointError


class Tracker(Protocol):
    """A destination of named numbers beside the metrics file."""

    def open(self, *, first_step: int) -> None:
        """Get ready for steps from ``first_step`` on; what a killed run logged beyond it is superseded."""
        ...

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Record numbers of one step (questions answered so far)."""
        ...

    def close(self) -> None:
        """Write what is buffered; does nothing if never opened."""
        ...


class MetricsFile:
    """One JSON object per line. Rows depend on the run alone, never on the clock, so a resumed run writes the same bytes."""

    def __init__(self, path: Path) -> None:
        """Name the file; `open` creates it."""
        self.path = path
        self._descriptor: int | None = None

    def open(self, *, offset: int) -> None:
        """Cut the file at ``offset`` bytes (0 for a new run) and append from there.

        Raises:
            CheckpointError: If the file is shorter than that.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        size = os.fstat(descriptor).st_size
        if size < offset:
            os.close(descriptor)
            raise CheckpointError(f"{self.path} has {size} bytes but the checkpoint was written at {offset}; restore the file of that run")
        os.ftruncate(descriptor, offset)
        os.lseek(descriptor, offset, os.SEEK_SET)
        self._descriptor = descriptor

    def write(self, row: Mapping[str, Json]) -> None:
        """Append a row."""
        assert self._descriptor is not None, "open() comes first"
        data = (json.dumps(row, allow_nan=False) + "\n").encode()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def offset(self) -> int:
        """Return the size in bytes."""
        assert self._descriptor is not None, "open() comes first"
        return os.lseek(self._descriptor, 0, os.SEEK_CUR)

    def sync(self) -> None:
        """Force the rows to the disk."""
        assert self._descriptor is not None, "open() comes first"
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class TensorBoardTracker:
    """Writes TensorBoard event files."""

    def __init__(self, folder: Path) -> None:
        """Write into ``folder``."""
        self.folder = folder
        self._writer: Any = None

    def open(self, *, first_step: int) -> None:
        """Open the writer; rows of a killed run from ``first_step`` on are hidden.

        Raises:
            ModuleNotFoundError: If TensorBoard is not installed.
        """
        try:
            from torch.utils.tensorboard.writer import SummaryWriter
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("TensorBoard logging needs: pip install tensorboard", name=error.name) from error
        self._writer = SummaryWriter(str(self.folder), purge_step=first_step)

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Add one scalar per metric."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()


class WandbTracker:
    """Logs to Weights & Biases, offline unless told otherwise."""

    def __init__(
        self, *, project: str, name: str, run_id: str, folder: Path, mode: Literal["offline", "online"], config: Mapping[str, Json]
    ) -> None:
        """Keep the settings; the library is imported by `open`.

        Args:
            project: Project name.
            name: Display name of the run.
            run_id: Id of the run, the same when it is resumed.
            folder: Where the run's files go.
            mode: ``offline`` writes locally (``wandb sync`` uploads), ``online`` uploads.
            config: Settings shown with the run.
        """
        self._project, self._name, self._id, self._mode = project, name, run_id, mode
        self._config: dict[str, Any] = dict(config)
        self._folder = folder
        self._run: Any = None

    def open(self, *, first_step: int) -> None:
        """Start or continue the run.

        Raises:
            ModuleNotFoundError: If wandb is not installed.
        """
        try:
            import wandb
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("Weights & Biases logging needs: pip install wandb", name=error.name) from error
        self._folder.mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            project=self._project,
            name=self._name,
            id=self._id,
            dir=str(self._folder),
            mode=self._mode,
            config=self._config,
            resume="allow",
            settings=wandb.Settings(silent=True, console="off"),
        )

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Log the numbers; validation and training numbers of one step are merged by the library."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Finish the run."""
        if self._run is not None:
            self._run.finish()


def finite_or_none(value: float) -> float | None:
    """Return the number, or ``None`` where JSON has no word for it (explained variance of constant returns)."""
    return float(value) if math.isfinite(value) else None
