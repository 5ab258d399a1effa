"""The pieces of a sentence that can be an answer: names, noun phrases, amounts, clock times, places."""

from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from models.embedded.dates import CLOCK
from models.embedded.english import FUNCTION_WORDS, WORD, is_content, lemmas, stem, stem_set
from models.embedded.quantities import quantities
from models.embedded.word_lists import word_list

PREPOSITIONS = word_list("prepositions")
_PLACE_PREPOSITIONS = PREPOSITIONS - {"with", "for", "of", "by", "to"} | {"next"}
_DETERMINERS = word_list("determiners")
_JOINING = frozenset(["of", "and", "&", "the", "de", "la"])
_SMALL_WORDS = frozenset(["little", "bit", "more", "rather", "really", "very", "quite"])


class Piece(Enum):
    """What a chunk is."""

    NAME = auto()
    NOUNS = auto()
    AMOUNT = auto()
    CLOCK = auto()


@dataclass(frozen=True)
class Chunk:
    """A piece of a sentence.

    ``before`` holds up to three lower-case words before it (nearest last), ``after`` the word after it; ``place`` is
    its first word's number in the sentence, ``end`` the number of the word after it. ``preposition`` is the
    preposition it hangs on, with a determiner in between at most.
    """

    kind: Piece
    text: str
    stems: frozenset[str]
    before: tuple[str, ...]
    after: str
    place: int
    end: int
    preposition: str


@dataclass(frozen=True)
class Token:
    """A word of a sentence with its stem and place in the text."""

    text: str
    stem: str
    start: int
    end: int


@lru_cache(maxsize=50_000)
def tokens(text: str) -> tuple[Token, ...]:
    """The words of a sentence."""
    return tuple(Token(match.group(), stem(match.group()), match.start(), match.end()) for match in WORD.finditer(text))


@lru_cache(maxsize=50_000)
def chunks(text: str) -> tuple[Chunk, ...]:
    """All pieces of a sentence, in order."""
    found = [_chunk(Piece.CLOCK, text, match.start(), match.end()) for match in CLOCK.finditer(text)]
    amounts = quantities(text)
    found += [_chunk(Piece.AMOUNT, text, quantity.start, quantity.end) for quantity in amounts]
    names = [(start, end) for start, end in _names(text) if not any(start < one.end and end > one.start for one in amounts)]
    found += [_chunk(Piece.NAME, text, start, end) for start, end in names]
    found += [_chunk(Piece.NOUNS, text, start, end) for start, end in _noun_runs(text, names)]
    return tuple(sorted(found, key=lambda chunk: chunk.place))


def _chunk(kind: Piece, text: str, start: int, end: int) -> Chunk:
    words = tokens(text)
    inside = [number for number, token in enumerate(words) if token.start < end and token.end > start]
    place, stop = (inside[0], inside[-1] + 1) if inside else (0, 0)
    before = tuple(token.text.casefold() for token in words[max(0, place - 3) : place])
    after = words[stop].text.casefold() if stop < len(words) else ""
    preposition = next((word for word in reversed(before) if word not in _DETERMINERS and word not in _SMALL_WORDS), "")
    phrase = text[start:end].strip()
    return Chunk(
        kind,
        phrase,
        stem_set(phrase),
        before,
        after,
        place,
        stop,
        preposition if preposition in PREPOSITIONS or preposition == "next" else "",
    )


def _names(text: str) -> list[tuple[int, int]]:
    """Runs of capitalised words; a sentence's first word counts only if it is no ordinary word."""
    words = tokens(text)
    spans: list[tuple[int, int]] = []
    place = 0
    while place < len(words):
        if not _starts_name(text, words, place):
            place += 1
            continue
        stop = place + 1
        while stop < len(words):
            gap = text[words[stop - 1].end : words[stop].start]
            if gap not in {" ", " & ", ". "} or (gap == ". " and len(words[stop - 1].text) > 2):
                break
            if words[stop].text[0].isupper():
                stop += 1
            elif (
                words[stop].text in _JOINING
                and stop + 1 < len(words)
                and words[stop + 1].text[0].isupper()
                and text[words[stop].end : words[stop + 1].start] == " "
            ):
                stop += 2
            else:
                break
        spans.append((words[place].start, words[stop - 1].end))
        place = stop
    return spans


def _starts_name(text: str, words: tuple[Token, ...], place: int) -> bool:
    word = words[place].text
    if not word[0].isupper() or (word.casefold() in FUNCTION_WORDS and not (word == "The" and place and _capital(words, place + 1))):
        return False
    opens = place == 0 or text[words[place - 1].end : words[place].start].strip()[-1:] in {".", "!", "?", ":"}
    if not opens:
        return True
    return _capital(words, place + 1) or not (set(lemmas(word.casefold())) - {"PROPN"})


def _capital(words: tuple[Token, ...], place: int) -> bool:
    return place < len(words) and words[place].text[0].isupper()


def _noun_runs(text: str, names: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of content words that are no names and end in a word that can be a noun."""
    words = tokens(text)
    runs: list[list[Token]] = [[]]
    for number, token in enumerate(words):
        gap = text[words[number - 1].end : token.start] if number else ""
        if gap.strip():
            runs.append([])
        named = any(start <= token.start < end for start, end in names)
        if (
            not is_content(token.text)
            or named
            or _only_verb(token.text)
            or token.text[0].isdigit()
            or token.text.casefold() in _SMALL_WORDS
        ):
            runs.append([])
        else:
            runs[-1].append(token)
    spans = []
    for run in runs:
        while run and not _noun_like(run[-1].text):
            run.pop()
        if run:
            spans.append((run[0].start, run[-1].end))
    return spans


def _only_verb(word: str) -> bool:
    tags = lemmas(word.casefold())
    return bool(tags) and not ({"NOUN", "ADJ", "PROPN"} & tags.keys())


def _noun_like(word: str) -> bool:
    tags = lemmas(word.casefold())
    return not tags or bool({"NOUN", "PROPN"} & tags.keys()) or ("ADJ" in tags and not ({"VERB", "ADV"} & tags.keys()))


def place_phrase(chunk: Chunk, text: str) -> str:
    """A chunk with its preposition and determiner as written, "" if it does not hang on a preposition of place."""
    if chunk.preposition not in _PLACE_PREPOSITIONS and chunk.preposition != "to":
        return ""
    words = tokens(text)
    back = chunk.place - 1
    while back >= 0 and words[back].text.casefold() != chunk.preposition:
        back -= 1
    if chunk.preposition in {"to", "from"} and back >= 1 and words[back - 1].text.casefold() == "next":
        back -= 1
    if chunk.preposition == "to" and words[back].text.casefold() != "next":
        return ""
    return text[words[max(back, 0)].start : words[chunk.end - 1].end]
