"""Errors of the memory package."""

from pathlib import Path


class UnknownForm(ValueError):
    """An evidence form that is not registered."""


class BankError(RuntimeError):
    """A memory bank that is missing, damaged or of another format version; the message says how to rebuild it."""


def damaged(path: Path, what: str) -> BankError:
    """The error for a bank whose files are not what was written."""
    return BankError(f"{path}: damaged memory bank ({what}); remove the bank's folder and build it again")
