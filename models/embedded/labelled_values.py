"""Labels with their values in a sentence, as written: "deep sleep 78 min", "pulse: 131 bpm", "my budget is around $800".

A quantity that a sentence only mentions ("I waited 20 minutes") has no label and is left out; so is what is asked, supposed or usual.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from models.embedded.chunks import Token, tokens
from models.embedded.english import is_content, lemmas
from models.embedded.measures import Measure, measures
from models.embedded.word_lists import word_list

LONGEST_LABEL = 4  # words: what is longer is no name of a value
_LONGEST_TEXT = 2
_PIECES = re.compile(r"[;|]\s*|,\s+(?!\d{3,4}\b)|\s+(?:and|but|while|plus)\s+")
_COLON = re.compile(r"\**\s*[:=]\**$")
_AT = re.compile(r"\s+at$", re.IGNORECASE)
_NUMBER = re.compile(r"\s+number$", re.IGNORECASE)
_HEDGES = re.compile(
    r"(?:\s+(?:now|still|only|just|about|around|roughly|approximately|nearly|almost|exactly|currently|already))*$", re.IGNORECASE
)
_OF = re.compile(r"\s+of$", re.IGNORECASE)
_COST = re.compile(r"(?:\s+(?:had|has|have))?\s+costs?(?:\s+(?:me|us|him|her|them))?$", re.IGNORECASE)
_IS = re.compile(
    r"\s+(?:is|was|are|were|equals?|reache[ds]|averaged?|looks?\s+like|stays?(?:\s+at)?|stood\s+at|stands\s+at|(?:comes|came|amounts|amounted)\s+to)$",
    re.IGNORECASE,
)
_LIST_END = re.compile(r"(?:\s+(?:today|now|again|tonight|yesterday|overall|in total|on average))?[\s.!)*\"”]*$", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[.!)*\"”]*(?:\s*$|[,;:](?=\s)|\s+[(—–]|\s+(?P<next>[^\W\d_]+))")
_TEXT_PAIR = re.compile(r"[\s*•–-]*(?P<label>[^\s:*](?:[^:*]*[^\s:*])?)\**\s?:\**\s+(?P<value>[^\W_](?:[^:*]*[^\s:*.!])?)[\s.!*]*")
_JOIN = re.compile(r"[\s*-]*")
_POSSESSIVE = re.compile(r"['’]s$")
_SUPPOSING = word_list("supposing")
_OPENERS = word_list("openers")
_INNER = word_list("label_inner")
_LATER = word_list("later")
_DETERMINERS = word_list("determiners") | {"the"}
_PREPOSITIONS = word_list("prepositions")
_SHORT_PREPOSITIONS = frozenset(["of", "for", "in", "on", "to", "per", "with", "at", "by", "from"])
_BEFORE_VERBS = word_list("before_verbs")
_PARTICIPLE = ("ed", "en", "nt")  # bees counted, time spent
_Span = TypeVar("_Span", Token, Measure)


@dataclass(frozen=True)
class LabelledValue:
    """A label, without articles, and its value as written; both stand in ``start``..``end`` of the sentence."""

    label: str
    value: str
    start: int
    end: int


@lru_cache(maxsize=50_000)
def labelled_values(sentence: str) -> tuple[LabelledValue, ...]:
    """The labelled values of a sentence, in order; a question has none."""
    if sentence.rstrip('"”’)* ').endswith("?"):
        return ()
    supposed = any(token.text.casefold() in _SUPPOSING for token in tokens(sentence))
    told: list[LabelledValue] = []
    items: list[tuple[LabelledValue, Measure]] = []
    start = 0
    for gap in [*_PIECES.finditer(sentence), None]:
        end = gap.start() if gap else len(sentence)
        for measure in _between(measures(sentence), start, end):
            if item := _item(sentence, start, measure, end):
                items.append((item, measure))
            elif not supposed and (statement := _statement(sentence, start, measure)):
                told.append(statement)
            start = measure.end
        start = gap.end() if gap else end
    is_list = len(items) > 1 or ": " in sentence
    told += [item for item, measure in items if is_list or measure.unit not in {"", "clock"}]
    told += _texts(sentence, known=[item for item, _ in items])
    return tuple(sorted(told, key=lambda one: one.start))


def label_of(text: str) -> str:
    """A text as a label, without what opens it; "" if it is no name of a value."""
    named = _name(text, 0, len(text))
    return named[0] if named else ""


def _item(sentence: str, start: int, measure: Measure, end: int) -> LabelledValue | None:
    """A piece that is a label with its value and nothing else: "deep sleep 78 min", "pulse at 131 bpm", "pulse: 131 bpm"."""
    if not _LIST_END.match(sentence, measure.end, end):
        return None
    area = sentence[start : measure.start].rstrip()
    if _COST.search(area):
        return None
    separator = _COLON.search(area) or _AT.search(area)
    stop = start + (separator.start() if separator else len(area))
    named = _name(sentence, _after_intro(sentence, start, stop), stop)
    return LabelledValue(named[0], sentence[measure.start : measure.end], named[1], measure.end) if named else None


def _after_intro(sentence: str, start: int, stop: int) -> int:
    """Where a label begins that ends at ``stop``: behind "Morning log." or "Today:"."""
    intro = max(sentence.rfind(sign, start, stop) for sign in (": ", ". "))
    return intro + 2 if intro >= 0 else start


def _statement(sentence: str, start: int, measure: Measure) -> LabelledValue | None:
    """What a clause says a value is of: "the rent is 90 EUR", "the drill cost 74 EUR", "a pulse of 131 bpm", "locker number 31"."""
    ending = _CLAUSE_END.match(sentence, measure.end)
    if ending is None or (ending["next"] and (is_content(ending["next"]) or ending["next"].casefold() in _LATER)):
        return None
    area = sentence[start : measure.start].rstrip()
    suffix = ""
    if number := _NUMBER.search(area):
        area, suffix = area[: number.start()], " number"
    area = _HEDGES.sub("", area)
    cost, of, copula = (pattern.search(area) for pattern in (_COST, _OF, _IS))
    if cost:
        suffix = " cost"
    elif (of and not measure.is_physical) or not (of or copula or suffix):
        return None
    frame = cost or of or copula
    named = _subject(sentence, start, start + (frame.start() if frame else len(area)), owned=of is not None)
    if not named or len(named[0].split()) + bool(suffix) > LONGEST_LABEL:
        return None
    return LabelledValue(named[0] + suffix, sentence[measure.start : measure.end], named[1], measure.end)


def _name(text: str, start: int, end: int) -> tuple[str, int] | None:
    """The label that all of a stretch of text is, and where it starts; None if it is none."""
    words = _between(tokens(text), start, end)
    places = [start, *(token.end for token in words)], [*(token.start for token in words), end]
    if not all(_JOIN.fullmatch(text, gap, following) for gap, following in zip(*places, strict=True)):
        return None
    while words and (words[0].text.casefold() in _OPENERS or _POSSESSIVE.search(words[0].text)):
        words = words[1:]
    return _label(words)


def _subject(text: str, start: int, end: int, *, owned: bool) -> tuple[str, int] | None:
    """The noun phrase that a stretch of text ends with, without places ("at the pool"); one that is ``owned`` needs a determiner."""
    words = [*_between(tokens(text), start, end)]
    kept: list[Token] = []
    reached = end
    while words and _JOIN.fullmatch(text, words[-1].end, reached):
        word = words.pop()
        plain = word.text.casefold()
        reached = word.start
        if plain in _DETERMINERS or _POSSESSIVE.search(plain):
            before = words[-1].text.casefold() if words else ""
            if before in _PREPOSITIONS - {"of", "for"} and not owned:
                kept, reached = [], words.pop().start
            elif before not in {"of", "for"}:
                return _label(kept)
        elif plain in _BEFORE_VERBS:
            return None if owned else _label(kept[1:])
        elif (is_content(plain) and not _only_verb(plain)) or plain in _INNER:
            kept.insert(0, word)
        else:
            break
    return None if owned else _label(kept)


def _between(ordered: Sequence[_Span], start: int, end: int) -> Sequence[_Span]:
    """Those of some words or measures, in order of place, that lie inside a stretch of text."""
    return ordered[bisect_left(ordered, start, key=lambda one: one.start) : bisect_right(ordered, end, key=lambda one: one.end)]


def _label(words: Sequence[Token]) -> tuple[str, int] | None:
    """One to four words that can name a value, and where the first starts."""
    plain = [token.text.casefold() for token in words]
    fits = (
        0 < len(words) <= LONGEST_LABEL
        and all((is_content(word) and not word[0].isdigit()) or word in _INNER for word in plain)
        and plain[0] not in _SHORT_PREPOSITIONS
        and plain[-1] not in _SHORT_PREPOSITIONS
        and any(_can_name(token) for token in words)
        and (not _only_verb(plain[-1]) or plain[-1].endswith("ing") or ("NOUN" in lemmas(plain[0]) and plain[-1].endswith(_PARTICIPLE)))
    )
    return (" ".join(token.text for token in words), words[0].start) if fits else None


def _can_name(token: Token) -> bool:
    """Whether a word can name what is measured: a noun, an abbreviation or an unknown word, but not a name inside a sentence."""
    tags = lemmas(token.text.casefold())
    return "NOUN" in tags or token.text.isupper() or token.text.endswith("ing") or (not tags and (token.text.islower() or not token.start))


def _only_verb(word: str) -> bool:
    tags = lemmas(word)
    return bool(tags) and not {"NOUN", "ADJ", "PROPN"} & tags.keys()


def _texts(sentence: str, *, known: Sequence[LabelledValue]) -> list[LabelledValue]:
    """Values that are words, where all else in a sentence is pairs like them or ``known``: "mood: cheerful, energy: low, pulse: 61 bpm"."""
    found: list[LabelledValue] = []
    start = 0
    for gap in [*_PIECES.finditer(sentence), None]:
        end = gap.start() if gap else len(sentence)
        if any(start <= one.start < end for one in known):
            start = gap.end() if gap else end
            continue
        pair = _TEXT_PAIR.fullmatch(sentence, _after_intro(sentence, start, max(sentence.rfind(": ", start, end), start)), end)
        named = _name(sentence, pair.start("label"), pair.end("label")) if pair else None
        if not pair or not named or len(pair["value"].split()) > _LONGEST_TEXT or not is_content(pair["value"].split()[0]):
            return []
        found.append(LabelledValue(named[0], pair["value"], named[1], pair.end("value")))
        start = gap.end() if gap else start
    return found
