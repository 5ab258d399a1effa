"""Lists of labels with values, read the other way round: which label has a value, or the highest one."""

import re
from collections.abc import Sequence

from models.embedded.evidence import Evidence, Statement
from models.embedded.quantities import quantities
from models.embedded.question import Asked
from models.embedded.question_kinds import Kind
from models.embedded.ranking import rank, topic_weights

_WHICH_HAS = re.compile(r"\b(?:which|what) (?!date)\w+(?: \w+)? (?:has|had|is|was|shows?|got|reached)\b", re.IGNORECASE)


def label_of_value(asked: Asked, statements: Sequence[Statement]) -> str:
    """The label of the row whose value the question gives; "" if the question gives none or no row has it."""
    if asked.kind not in {Kind.THING, Kind.DATE, Kind.PLACE, Kind.PERSON}:
        return ""
    given = {quantity.value for quantity in quantities(asked.text)}
    rows = [one for one in statements if given and one.label and given & {quantity.value for quantity in quantities(one.value)}]
    if not rows:
        return ""
    ranked = rank(topic_weights(asked.topic, rows), rows)
    return ranked[0].statement.label if ranked else ""


def label_of_extreme(asked: Asked, evidence: Evidence) -> str:
    """The label with the highest (or lowest) value in the list that the question names; "" if it asks for a value or a date."""
    if not _WHICH_HAS.search(asked.text):
        return ""
    rows = [one for one in evidence.statements if one.label and quantities(one.value) and not one.stems & frozenset(asked.heads)]
    ranked = rank(topic_weights(asked.topic, rows), rows)
    if not ranked:
        return ""
    best = ranked[0].statement
    listed = [one for one in rows if (one.memory, one.image_ids) == (best.memory, best.image_ids)]
    if len(listed) < 2:
        return ""
    pick = max if asked.kind is Kind.HIGHEST else min
    return pick(listed, key=lambda one: quantities(one.value)[0].value).label
