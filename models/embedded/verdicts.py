"""Yes or no, and which came first: a claim held against the statements."""

import re

from data.values import format_number
from models.embedded.arithmetic import event
from models.embedded.chunks import Chunk, Piece, chunks
from models.embedded.evidence import Evidence
from models.embedded.quantities import quantities
from models.embedded.question import Asked, before_after
from models.embedded.ranking import rank, topic_weights
from models.embedded.spans import clean

YES, NO = "Yes.", "No."
_NEEDED = 0.35
_HOLDS = 0.5
_SPOKEN_OF = 0.12
_NEAR = 0.6
_CONFLICT = re.compile(r"\bconflict|\bcontradict|\binconsistent\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|no|n't|no longer|without|instead|changed|moved|switched|corrected?)\b|n['’]t\b", re.IGNORECASE)


def yes_or_no(asked: Asked, evidence: Evidence) -> str:
    """Whether the latest matching statement says what the question claims; "" if nothing speaks of it."""
    ordered = _ordered(asked, evidence)
    if ordered:
        return ordered
    inverted = bool(_CONFLICT.search(asked.text))
    statements = [one for one in evidence.statements if not one.text.endswith("?")]
    claimed = _claimed(asked)
    if claimed:
        holds = _latest_value_holds(asked, claimed, evidence)
        if holds is not None:
            return YES if holds != inverted else NO
    ranked = rank(topic_weights(asked.topic, statements), statements, latest=True)
    if not ranked or ranked[0].coverage < _SPOKEN_OF:
        return YES if inverted else ""
    negated = bool(_NEGATION.search(asked.text)) != bool(_NEGATION.search(ranked[0].statement.text))
    holds = ranked[0].coverage >= _HOLDS and not negated
    return YES if holds != inverted else NO


def order_answer(asked: Asked, evidence: Evidence) -> str:
    """The side that came first (or last); "" unless both are told."""
    if len(asked.sides) != 2:
        return ""
    told = [event(side, evidence) for side in asked.sides]
    if told[0] is None or told[1] is None:
        return ""
    places = [(day, found.statement.order) for found, day in (told[0], told[1])]
    late = bool(re.search(r"\b(?:later|last|after|more recently)\b", asked.text, re.IGNORECASE))
    first_is_earlier = places[0] <= places[1]
    return clean(asked.sides[0] if first_is_earlier != late else asked.sides[1])


def _ordered(asked: Asked, evidence: Evidence) -> str:
    split = before_after(asked.text)
    if split is None:
        return ""
    told = [event(side, evidence) for side in (split[0], split[2])]
    if told[0] is None or told[1] is None:
        return ""
    places = [(day, found.statement.order) for found, day in (told[0], told[1])]
    return YES if (places[0] < places[1]) == (split[1] == "before") else NO


def _claimed(asked: Asked) -> tuple[Chunk, ...]:
    """The names, amounts and clock times that the question claims."""
    kinds = {Piece.NAME, Piece.AMOUNT, Piece.CLOCK}
    return tuple(
        chunk
        for chunk in chunks(asked.text)
        if (chunk.kind in kinds and not chunk.stems <= {asked.subject} | frozenset({""})) or chunk.kind is Piece.CLOCK
    )


def _latest_value_holds(asked: Asked, claimed: tuple[Chunk, ...], evidence: Evidence) -> bool | None:
    """Whether the latest statement of the topic that holds a value of the claimed kind holds the claimed one; None if none does."""
    kinds = {chunk.kind for chunk in claimed}
    values = frozenset(value for chunk in claimed for value in _values(chunk))
    topic = tuple((stem, weight) for stem, weight in asked.topic if stem not in values)
    if not topic:
        return None
    ranked = rank(topic_weights(topic, evidence.statements), evidence.statements, latest=True)
    told = [(found, said) for found in ranked if (said := [chunk for chunk in chunks(found.statement.text) if chunk.kind in kinds])]
    if not told or told[0][0].coverage < _NEEDED:
        return None
    near = [pair for pair in told if pair[0].coverage >= _NEAR * told[0][0].coverage]
    _, said = max(near, key=lambda pair: (pair[0].statement.date, pair[0].coverage, pair[0].statement.order))
    return values <= frozenset(value for chunk in said for value in _values(chunk))


def _values(chunk: Chunk) -> tuple[str, ...]:
    """What is compared of a chunk: the number of an amount, the words of a name, a clock time as written."""
    if chunk.kind is Piece.AMOUNT:
        return tuple(format_number(quantity.value) for quantity in quantities(chunk.text)) or (chunk.text,)
    return tuple(sorted(chunk.stems)) if chunk.kind is Piece.NAME else (chunk.text.casefold(),)
