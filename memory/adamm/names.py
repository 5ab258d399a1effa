"""Names as the tables have them, and text as it is compared: without differences of case, form and space."""

import unicodedata
from collections.abc import Iterable

import regex  # type: ignore[import-untyped]  # the package has no type information

MAX_NAME = 60
"""A longer name is none: it is a sentence."""
_WORDS = regex.compile(r"[^\W_]+")


def fold(text: str) -> str:
    """NFKC and casefold: what a text column's companion holds, and what a text is compared as."""
    return unicodedata.normalize("NFKC", text).casefold()


def fold_spaces(text: str) -> str:
    """`fold`, and every run of whitespace as one space, none at the ends."""
    return " ".join(fold(text).split())


def snake_case(text: str) -> str:
    """The words of a text, folded and joined by underscores; "" if it has none."""
    return "_".join(_WORDS.findall(fold(text)))


def unique(names: Iterable[str]) -> list[str]:
    """The names in order, with ``_2``, ``_3`` … behind those that were given before, whatever their case."""
    taken: set[str] = set()
    made = []
    for name in names:
        number = 1
        candidate = name
        while fold(candidate) in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(fold(candidate))
        made.append(candidate)
    return made
