"""Text metrics of the benchmarks, one profile each, bit-compatible with the published scorers.

The three profiles normalise differently, so the same answers score differently; every result names its profile.

* ``mem_gallery``: whole words "a", "an", "the", "and" go first, then each ASCII punctuation character becomes a space,
  except "_" and a dot between digits.
* ``memeye``: the same, but "and" stays and an article goes only when white space and a word character follow.
* ``budgetmem``: ASCII punctuation is deleted (so words grow together), then the four words go. It defines F1 only.

F1 compares Porter stems; BLEU-1 and exact match compare unstemmed tokens.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

import regex  # type: ignore[import-untyped]  # the package has no type information

_SPACED_PUNCTUATION = re.compile(rf"(?<!\d)\.|\.(?!\d)|[{re.escape(string.punctuation.replace('_', '').replace('.', ''))}]")
_DELETED_PUNCTUATION = str.maketrans("", "", string.punctuation)
# The published scorers of Mem-Gallery and BudgetMem use `regex`, whose word characters include combining marks, unlike those of `re`.
_FOUR_WORDS = regex.compile(r"\b(a|an|the|and)\b")
_ARTICLE_BEFORE_WORD = re.compile(r"\b(a|an|the)\s+(?=\w)")


def normalise_mem_gallery(text: str) -> str:
    """Normalise as Mem-Gallery's scorer does; the result has single spaces and no surrounding ones."""
    return _spaced(_FOUR_WORDS.sub(" ", text.lower()))


def normalise_memeye(text: str) -> str:
    """Normalise as MemEye's scorer does."""
    return _spaced(_ARTICLE_BEFORE_WORD.sub(" ", text.lower()))


def normalise_budgetmem(text: str) -> str:
    """Normalise as BudgetMem's scorer does."""
    return " ".join(_FOUR_WORDS.sub(" ", text.lower().translate(_DELETED_PUNCTUATION)).split())


def _spaced(text: str) -> str:
    return " ".join(_SPACED_PUNCTUATION.sub(" ", text).split())


@dataclass(frozen=True)
class MetricProfile:
    """One benchmark's way to score an answer text.

    Args:
        name: The profile's name in configs and results.
        normalise: Its text normalisation.
        f1_only: True where the benchmark defines neither BLEU-1 nor exact match.
        empty_texts_match: Exact match of two texts that normalise to nothing.
        failure_text: A prediction that the benchmark's scorer gives F1 0 whatever the gold (any case); "" for none.
    """

    name: str
    normalise: Callable[[str], str]
    f1_only: bool = False
    empty_texts_match: bool = True
    failure_text: str = ""

    def f1(self, prediction: str, gold: str) -> float:
        """Return the harmonic mean of precision and recall over stems with repetition, in [0, 1]; 0 for empty texts."""
        if self.failure_text and prediction.lower() == self.failure_text.lower():
            return 0.0
        predicted, wanted = _stem_counts(self.normalise, prediction), _stem_counts(self.normalise, gold)
        matches = _n_matches(predicted, wanted)
        if matches == 0:
            return 0.0
        precision, recall = matches / predicted.total(), matches / wanted.total()
        return 2 * precision * recall / (precision + recall)

    def bleu1(self, prediction: str, gold: str) -> float | None:
        """Return clipped unigram precision times the brevity penalty, in [0, 1]; None where the benchmark has no BLEU."""
        if self.f1_only:
            return None
        predicted, wanted = _token_counts(self.normalise, prediction), _token_counts(self.normalise, gold)
        matches = _n_matches(predicted, wanted)
        if matches == 0:
            return 0.0
        n_predicted, n_wanted = predicted.total(), wanted.total()
        brevity_penalty = 1.0 if n_predicted > n_wanted else math.exp(1 - n_wanted / n_predicted)
        return brevity_penalty * matches / n_predicted

    def exact_match(self, prediction: str, gold: str) -> bool | None:
        """Tell whether the normalised texts are equal; None where the benchmark has no exact match."""
        if self.f1_only:
            return None
        normalised = self.normalise(prediction)
        return normalised == self.normalise(gold) and (self.empty_texts_match or normalised != "")


PROFILES: Mapping[str, MetricProfile] = {
    profile.name: profile
    for profile in (
        MetricProfile("mem_gallery", normalise_mem_gallery),
        MetricProfile("memeye", normalise_memeye, empty_texts_match=False),
        MetricProfile("budgetmem", normalise_budgetmem, f1_only=True, failure_text="API Request Error"),
    )
}


def profile(name: str) -> MetricProfile:
    """Return a profile by name.

    Raises:
        ValueError: there is none of that name; the message lists those there are.
    """
    if name not in PROFILES:
        raise ValueError(f"unknown metric profile {name!r}; choose one of {', '.join(sorted(PROFILES))}")
    return PROFILES[name]


def _n_matches(predicted: Counter[str], wanted: Counter[str]) -> int:
    return sum(min(n, wanted[token]) for token, n in predicted.items())


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return str(_porter()(word))


@cache
def _porter() -> Callable[[str], str]:
    from nltk.stem import PorterStemmer  # takes seconds, and naming a profile needs no stemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem


# Counters are shared through these caches and never changed. Looking a missing key up in a Counter does not add it.
@lru_cache(maxsize=1 << 15)
def _stem_counts(normalise: Callable[[str], str], text: str) -> Counter[str]:
    return Counter(map(_stem, normalise(text).split()))


@lru_cache(maxsize=1 << 15)
def _token_counts(normalise: Callable[[str], str], text: str) -> Counter[str]:
    return Counter(normalise(text).split())
