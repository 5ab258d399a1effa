"""The arithmetic over what several statements say: sums, extremes, counts, averages, differences, trends, days between."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from data.values import format_number
from models.embedded.dates import DateRange, happened_on, parse_iso
from models.embedded.english import stem, stem_set
from models.embedded.evidence import Evidence, Statement
from models.embedded.quantities import dimension_of, observations
from models.embedded.question import Asked, topic_of
from models.embedded.question_kinds import Kind
from models.embedded.ranking import Ranked, rank, topic_weights

_COVERED = 0.6
_NEEDED = 0.25


@dataclass(frozen=True)
class Reading:
    """A value of the asked label on a day."""

    date: str
    order: int
    value: Decimal
    unit: str
    from_picture: bool


def readings(asked: Asked, evidence: Evidence, days: Sequence[DateRange]) -> list[Reading]:
    """The values of the label the question names, one a day and value, in order of time.

    An observation counts if its label's words are among the question's; of several such labels the one that covers most
    of the question is meant.
    """
    topic = asked.stems
    groups: dict[frozenset[str], dict[tuple[str, Decimal], Reading]] = {}
    for statement in evidence.statements:
        if days and not any(span.holds(statement.date) for span in days):
            continue
        if statement.from_picture and asked.from_text and not asked.from_picture:
            continue
        for observation in observations(statement.text):
            shared = observation.label & topic
            if observation.label and len(shared) >= _COVERED * len(observation.label):
                reading = Reading(
                    statement.date, statement.order, observation.quantity.value, observation.quantity.unit, statement.from_picture
                )
                groups.setdefault(shared, {}).setdefault((statement.date, reading.value), reading)
    if not groups:
        return []
    best = max(groups, key=lambda label: (len(label), len(groups[label]), sorted(label)))
    found = list(groups[best].values())
    unit = Counter(reading.unit for reading in found).most_common(1)[0][0]
    return sorted((reading for reading in found if reading.unit == unit), key=lambda reading: (reading.date, reading.order))


def averages_are_read(asked: Asked, evidence: Evidence) -> bool:
    """Whether "average" belongs to the name of a value in the evidence ("average pulse"), so that it is looked up, not computed."""
    word = stem("average")
    topic = asked.stems
    return any(word in one.label and one.label <= topic for statement in evidence.statements for one in observations(statement.text))


def compute(asked: Asked, found: Sequence[Reading]) -> str:
    """The result over readings as a short answer; "" where the kind needs more readings than there are."""
    values = [reading.value for reading in found]
    unit = found[0].unit if found else ""
    if not values:
        return ""
    if asked.kind is Kind.AVERAGE:
        return format_number(sum(values, Decimal(0)) / len(values), unit)
    if asked.kind is Kind.TOTAL:
        return format_number(sum(values, Decimal(0)), unit)
    if asked.kind in {Kind.HIGHEST, Kind.LOWEST}:
        pick = (max if asked.kind is Kind.HIGHEST else min)(found, key=lambda reading: reading.value)
        wants_day = any(word in asked.text.casefold() for word in ("which day", "which date", "what date", "what day", "when"))
        return pick.date if wants_day else format_number(pick.value, unit)
    if asked.kind is Kind.COUNT:
        return str(_passing(asked, values))
    if len(values) < 2:
        return ""
    if asked.kind is Kind.DIFFERENCE:
        shown = [reading.value for reading in found if reading.from_picture]
        told = [reading.value for reading in found if not reading.from_picture]
        one, other = (shown[-1], told[-1]) if shown and told else (values[0], values[-1])
        return format_number(abs(other - one), unit)
    return "Unchanged" if values[-1] == values[0] else "Increase" if values[-1] > values[0] else "Decrease"


def _passing(asked: Asked, values: Sequence[Decimal]) -> int:
    if asked.threshold is None:
        return len(values)
    sense, number = asked.threshold[0], Decimal(asked.threshold[1])
    if sense == "at least":
        return sum(value >= number for value in values)
    if sense == "at most":
        return sum(value <= number for value in values)
    above = sense in {"above", "over", "more than", "greater than", "exceed", "exceeds", "exceeded", "higher than", "longer than"}
    return sum(value > number if above else value < number for value in values)


def event(side: str, evidence: Evidence) -> tuple[Ranked, str] | None:
    """The statement that best tells of one side of a comparison, and its day; None if nothing tells of it."""
    ranked = rank(topic_weights(topic_of(side), evidence.statements), evidence.statements)
    if not ranked or ranked[0].coverage < _NEEDED:
        return None
    statement = ranked[0].statement
    return ranked[0], happened_on(statement.text, statement.date)


def days_between(first: str, second: str) -> int | None:
    """Whole days between two ISO dates; None if one is unreadable."""
    one, two = parse_iso(first), parse_iso(second)
    return None if one is None or two is None else abs((two - one).days)


def amount_of(side: str, evidence: Evidence) -> tuple[Decimal, str] | None:
    """The amount that a statement about one item gives; None if there is none."""
    stems = stem_set(side)
    ranked = rank(topic_weights(topic_of(side), evidence.statements), evidence.statements)
    for found in ranked[:12]:
        amounts = _amounts(found.statement)
        if found.coverage >= _NEEDED and amounts:
            named = [amount for amount in amounts if amount[2] & stems] or amounts
            return named[0][0], named[0][1]
    return None


def _amounts(statement: Statement) -> list[tuple[Decimal, str, frozenset[str]]]:
    return [
        (found.quantity.value, found.quantity.unit, found.label)
        for found in observations(statement.text)
        if dimension_of(found.quantity.unit) == "money"
    ]
