"""The words of a statement that answer a question: every piece of the sentence is scored, the best one is the answer."""

import re
from functools import lru_cache

from models.embedded.chunks import Chunk, Piece, chunks, place_phrase, tokens
from models.embedded.english import lemmas, stem_list, stem_set
from models.embedded.quantities import dimension_of, observations, quantities
from models.embedded.question import Asked
from models.embedded.question_kinds import Kind
from models.embedded.word_lists import word_list

_LABEL = re.compile(r"^(?P<label>[^:]{2,60}):\s+(?P<value>.+)$")
_TRANSPARENT = frozenset({"number", "code", "valu"})
_PLACES = stem_list("places")
_TIMES = stem_list("times")
_HEAD_SAID = 0.2
"""What it adds to a span that its sentence also says the noun that is asked for."""
_COPULAS = word_list("copulas")
_PASSED_OVER = word_list("passed_over")
_NEAR = 8
"""How many words around a copula are looked at for the topic."""
_ARTICLE = re.compile(r"^(?:the|a|an|my|our|some|that|this)\s+", re.IGNORECASE)
_OUTSIDE = ' *\t"“”‘’.,;:!?—–'


@lru_cache(maxsize=100_000)
def find_span(asked: Asked, text: str) -> tuple[str, float]:
    """The span of a statement that answers, and how well it fits the question (about 0 to 1); ("", 0.0) if none does."""
    best = _label_value(asked, text)
    for chunk in chunks(text):
        fit = _fit(asked, chunk, text)
        if fit > best[1] + 1e-9:
            best = (_written(asked, chunk, text), fit)
    return best


def clean(span: str) -> str:
    """A span without article, quotes and closing punctuation."""
    return _ARTICLE.sub("", span.strip(_OUTSIDE)).strip(_OUTSIDE)


def spaced_unit(text: str) -> str:
    """An amount with a space between its number and its unit, as answers are written."""
    return re.sub(r"(?<=\d)(?=[^\W\d_]|°|%)", " ", text) if re.fullmatch(r"[\d.,]+\s?\S+", text) else text


def _covered(topic: frozenset[str], text: str) -> float:
    """The share of a text's content stems that the topic names."""
    stems = stem_set(text)
    return len(stems & topic) / len(stems) if stems else 0.0


def _label_value(asked: Asked, text: str) -> tuple[str, float]:
    match = _LABEL.match(text)
    if not match or len(quantities(match["value"])) > 1:
        return "", 0.0
    covered = _covered(asked.stems | frozenset(asked.heads), match["label"])
    if asked.kind is Kind.PERSON and any(letter.isdigit() for letter in match["value"]):
        return "", 0.0
    return (spaced_unit(clean(match["value"])), 0.5 + 0.5 * covered) if covered >= 0.5 else ("", 0.0)


def _fit(asked: Asked, chunk: Chunk, text: str) -> float:
    """How well a chunk fits: its kind against the kind asked for, then the words around it."""
    topic = asked.stems
    if chunk.kind is not Piece.AMOUNT and chunk.kind is not Piece.CLOCK and (not chunk.stems - topic or chunk.stems <= {asked.subject}):
        return 0.0
    if chunk.kind is Piece.NOUNS and chunk.stems <= _TIMES:
        return 0.0
    base = _kind_fit(asked, chunk, text)
    if base <= 0.0:
        return 0.0
    heads = frozenset(asked.heads)
    if chunk.kind in {Piece.NAME, Piece.NOUNS} and chunk.stems & topic:
        base += 0.3 if tokens(text)[chunk.end - 1].stem in heads else -0.15
    elif heads & stem_set(text):
        base += _HEAD_SAID
    if asked.prepositions and chunk.preposition in asked.prepositions:
        base += 0.25
    return base + _cues(asked, chunk, text) - 0.012 * min(_distance(asked, chunk, text), 15)


def _kind_fit(asked: Asked, chunk: Chunk, text: str) -> float:
    if chunk.kind is Piece.CLOCK:
        return 0.9 if asked.kind is Kind.CLOCK else 0.0
    if chunk.kind is Piece.AMOUNT:
        return _amount_fit(asked, chunk, text)
    if asked.kind in {Kind.QUANTITY, Kind.CLOCK} or asked.dimension:
        return 0.0
    located = chunk.preposition in {"at", "in", "on", "near"}
    named = chunk.kind is Piece.NAME
    if asked.kind is Kind.PERSON:
        return (0.6 if len(chunk.text.split()) > 1 else 0.3) - (0.3 if located or chunk.text.startswith("The ") else 0.0) if named else 0.0
    if asked.kind is Kind.PLACE:
        if place_phrase(chunk, text):
            return 0.6 if named else 0.5
        return (0.45 if chunk.preposition == "to" else 0.15) if named else 0.0
    heads = frozenset(asked.heads)
    if asked.names_something:
        said = bool(heads & stem_set(text)) or bool(asked.prepositions and chunk.preposition in asked.prepositions) or not heads & _PLACES
        return (0.55 if said else 0.3) if named else 0.15
    if heads:
        return 0.3 if named else 0.4
    return 0.45 if named else 0.4


def _amount_fit(asked: Asked, chunk: Chunk, text: str) -> float:
    amount = next((quantity for quantity in quantities(text) if text[quantity.start : quantity.end].strip() == chunk.text), None)
    dimension = dimension_of(amount.unit) if amount else ""
    observation = next((seen for seen in observations(text) if amount and seen.quantity.start == amount.start), None)
    heads = frozenset(asked.heads)
    label = observation.label - _TRANSPARENT if observation else frozenset()
    named = len(label & (asked.stems | heads)) / len(label) if label else 0.0
    beside = bool(chunk.before and stem_set(chunk.before[-1]) & heads) or (
        chunk.before[-2:-1] != () and chunk.before[-1] == "number" and bool(stem_set(chunk.before[-2]) & heads)
    )
    counted = bool(amount and stem_set(amount.unit) & heads)
    if asked.dimension:
        return 0.9 + 0.1 * named if dimension == asked.dimension else 0.0 if dimension else 0.3 * named + 0.4 * counted
    if asked.kind is Kind.QUANTITY:
        return 0.95 if counted else 0.5 + 0.4 * named
    if asked.kind is not Kind.THING:
        return 0.0
    return 0.95 if beside else 0.9 if observation and named > 0.99 else 0.7 * named


def _cues(asked: Asked, chunk: Chunk, text: str) -> float:
    """What the words around a chunk say: complement of a topic subject, object of a topic verb, modifier of a topic noun."""
    if chunk.kind in {Piece.AMOUNT, Piece.CLOCK}:
        return 0.0
    topic = asked.stems | frozenset(asked.heads)
    words = tokens(text)
    score = 0.0
    back = chunk.place - 1
    while back >= 0 and words[back].text.casefold() in _PASSED_OVER:
        back -= 1
    if back >= 0:
        previous = words[back]
        if previous.text.casefold() in _COPULAS:
            score += 0.4 if {token.stem for token in words[max(0, back - _NEAR) : back]} & topic else 0.15
        elif previous.stem in topic:
            score += 0.3 if "VERB" in lemmas(previous.text.casefold()) else 0.2
    if chunk.end < len(words):
        following = words[chunk.end]
        if following.stem in topic:
            score += 0.25 if chunk.kind is Piece.NAME else 0.1
        elif following.text.casefold() in _COPULAS and {token.stem for token in words[chunk.end + 1 : chunk.end + _NEAR]} & topic:
            score += 0.25
    return score


def _distance(asked: Asked, chunk: Chunk, text: str) -> int:
    """Words between a chunk and the nearest topic word; 8 where the sentence has none."""
    topic = asked.stems
    away = [min(abs(number - chunk.place), abs(number - chunk.end + 1)) for number, token in enumerate(tokens(text)) if token.stem in topic]
    return min(away, default=8)


def _written(asked: Asked, chunk: Chunk, text: str) -> str:
    """A chunk as an answer: places with their preposition unless they are names, counts without the noun that was asked."""
    if asked.kind is Kind.PLACE and chunk.kind is Piece.NOUNS:
        return place_phrase(chunk, text) or clean(chunk.text)
    if chunk.kind is Piece.AMOUNT:
        found = next((quantity for quantity in quantities(text) if text[quantity.start : quantity.end].strip() == chunk.text), None)
        if found and found.unit and stem_set(found.unit) & frozenset(asked.heads) and not dimension_of(found.unit):
            return chunk.text.split()[0]
        return spaced_unit(chunk.text)
    return clean(chunk.text)


def best_clause(topic: frozenset[str], text: str) -> str:
    """The clause of a sentence that shares most with the topic and says something new."""
    clauses = [clause for clause in re.split(r"[;:—]|,\s+(?:and|but|so)\s+", text) if clause and stem_set(clause) - topic]
    return clean(max(clauses, key=lambda clause: (len(stem_set(clause) & topic), -len(clause)), default=text))
