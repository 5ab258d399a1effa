"""Noun phrases of one or two words, found without a tagger: runs of content words whose last word can be a noun."""

from collections import defaultdict
from collections.abc import Sequence

from models.embedded.english import WORD, is_content, lemmas, stem
from models.embedded.word_lists import word_list

_BEFORE_NOUNS = word_list("before_nouns")
_VAGUE = word_list("vague")


def noun_phrases(sentences: Sequence[str], limit: int) -> list[str]:
    """The most telling phrases of a text, best first, at most ``limit``.

    A phrase counts more when it is repeated, written with a capital inside a sentence, or made of two words.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    surface: dict[str, str] = {}
    for sentence in sentences:
        for phrase, weight in _phrases_of(sentence):
            key = " ".join(stem(word) for word in phrase.split())
            scores[key] += weight
            surface.setdefault(key, phrase)
    order = {key: place for place, key in enumerate(surface)}
    best = sorted(scores, key=lambda key: (-scores[key], order[key]))
    return [surface[key] for key in best[:limit]]


def _phrases_of(sentence: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    run: list[tuple[str, bool, bool]] = []
    before, end = "", 0
    for match in [*WORD.finditer(sentence), None]:
        word = match.group() if match else ""
        broken = match is None or sentence[end : match.start()].strip() != ""
        if run and (broken or not is_content(word) or word[0].isdigit()):
            found += _phrases_of_run(run)
            run = []
        if match is None:
            break
        if is_content(word) and word[0].isalpha() and len(word) > 2:
            run.append((word, match.start() > 0 and word[0].isupper(), before.casefold() in _BEFORE_NOUNS))
        before, end = word, match.end()
    return found


def _phrases_of_run(run: Sequence[tuple[str, bool, bool]]) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    marked = False
    for place, (word, capital, after_marker) in enumerate(run):
        marked = marked or after_marker
        if not _can_be_noun(word, capital, marked or place > 0) or word.casefold() in _VAGUE:
            continue
        modifies = place + 1 < len(run) and not capital and "ADJ" in lemmas(word.casefold())
        if not modifies:
            found.append((word, 1.0 + capital))
        if place and _can_modify(*run[place - 1][:2]):
            found.append((f"{run[place - 1][0]} {word}", 1.6 + capital + run[place - 1][1]))
    return found


def _can_be_noun(word: str, capital: bool, marked: bool) -> bool:
    tags = lemmas(word.casefold())
    if capital or not tags or ("PROPN" in tags and len(tags) == 1):
        return True
    if "NOUN" not in tags:
        return False
    return marked or not ({"VERB", "ADJ", "ADV"} & tags.keys())


def _can_modify(word: str, capital: bool) -> bool:
    tags = lemmas(word.casefold())
    return word.casefold() not in _VAGUE and (capital or not tags or bool({"NOUN", "ADJ"} & tags.keys()))
