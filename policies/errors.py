"""Errors of training, checkpoints and exported selectors; importable without torch."""

from __future__ import annotations

from pathlib import Path


class TrainingStopped(RuntimeError):
    """A run stopped before its end; ``checkpoint`` is the file it resumes from, or ``None`` when none was written."""

    def __init__(self, message: str, *, checkpoint: Path | None) -> None:
        """Keep the message and the checkpoint.

        Args:
            message: What stopped the run and how to continue it.
            checkpoint: The file to resume from.
        """
        super().__init__(message)
        self.checkpoint = checkpoint


class TrainingDiverged(ArithmeticError):
    """A reward, a training metric or a weight is not a finite number."""


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged or of another run."""


class ArtefactError(ValueError):
    """An exported selector cannot be read, or does not fit what it is used for."""


class ExportError(ValueError):
    """A selector cannot be exported: its settings are wrong or the exported graph does not reproduce it."""
