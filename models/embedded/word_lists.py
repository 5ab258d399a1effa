"""The lists of English words that the rules use, from ``words.toml``."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


@cache
def word_list(name: str) -> frozenset[str]:
    """The lower-case words of a list."""
    return frozenset(_lists()[name].split())
