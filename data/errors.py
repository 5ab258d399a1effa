"""Errors of the data package."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_SHOWN_PROBLEMS = 200


@dataclass(frozen=True)
class Problem:
    """One thing wrong in an input: where it is, what is wrong, and how to repair it.

    ``record`` and ``field`` may be "" where the fault has none (a missing folder); ``file`` names the file among
    several, relative to the path of the error that lists the problem.
    """

    record: str
    field: str
    what: str
    repair: str
    file: str = ""

    def __str__(self) -> str:
        where = [self.file, self.record, f"field {self.field!r}" if self.field else ""]
        place = ", ".join(part for part in where if part)
        return f"{place}{': ' if place else ''}{self.what}. Repair: {self.repair}."


class DatasetError(ValueError):
    """Input files that cannot be used; lists every problem of all of them at once."""

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        shown = [f"  - {problem}" for problem in self.problems[:MAX_SHOWN_PROBLEMS]]
        if len(self.problems) > MAX_SHOWN_PROBLEMS:
            shown.append(f"  ... and {len(self.problems) - MAX_SHOWN_PROBLEMS} more")
        super().__init__("\n".join([f"{path}: {len(self.problems)} problem(s):", *shown]))


class SplitError(ValueError):
    """A split that cannot be made, or that does not fit the dataset."""


class ImageError(ValueError):
    """An image file that cannot be decoded or is outside the limits."""
