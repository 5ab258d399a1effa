"""Canonical anchors: the form in which two episodes' anchors are compared (HiVe-Mem, §3.1; our rules).

A phrase is compatibility-normalised (NFKC), casefolded and cut into words at everything that is neither letter, mark
nor number; plurals are folded, articles and other determiners dropped, and the rest is cut at prepositions and
conjunctions into noun phrases. Of each noun phrase the last two words are kept, and its head noun is an anchor too.
"""

import re
import unicodedata
from collections.abc import Iterable

_DETERMINERS = frozenset(re.findall(r"\w+", "a an the my your his her its our their this that these those some any"))
_BOUNDARIES = frozenset(re.findall(r"\w+", "of in on at for with without from to by and or vs as via near under over into about"))
_POSSESSIVE = re.compile("['\u2019\u02bc]s?(?!\\w)")


def canonical_anchors(phrases: Iterable[str]) -> dict[str, str]:
    """Canonical anchors of a model's phrases, each with its first surface form, in order of appearance.

    >>> canonical_anchors(["The old Stone Bridges", "cup of coffee"])
    {'stone bridge': 'Stone Bridges', 'bridge': 'Bridges', 'cup': 'cup', 'coffee': 'coffee'}
    """
    found: dict[str, str] = {}
    for phrase in phrases:
        for words in _noun_phrases(phrase):
            for kept in dict.fromkeys([tuple(words[-2:]), tuple(words[-1:])]):
                canonical = " ".join(folded for folded, _ in kept)
                if any(character.isalpha() for character in canonical):
                    found.setdefault(canonical, " ".join(surface for _, surface in kept))
    return found


def _noun_phrases(phrase: str) -> list[list[tuple[str, str]]]:
    """Noun phrases of a phrase as (folded, surface) words."""
    parts: list[list[tuple[str, str]]] = [[]]
    for surface in _words(unicodedata.normalize("NFKC", phrase)):
        folded = fold_plural(unicodedata.normalize("NFKC", surface.casefold()))
        if folded in _BOUNDARIES:
            parts.append([])
        elif folded not in _DETERMINERS:
            parts[-1].append((folded, surface))
    return [part for part in parts if part]


def _words(text: str) -> list[str]:
    text = _POSSESSIVE.sub("", text)
    return "".join(character if unicodedata.category(character)[0] in "LMN" else " " for character in text).split()


def fold_plural(word: str) -> str:
    """Fold a regular English plural to its singular; other words are returned as they are."""
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1]
