"""Numbers with units in text, and the label–value observations that sentences and picture rows state."""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from models.embedded.dates import without_dates
from models.embedded.english import FUNCTION_WORDS, lemmas, stem_set

_NUMBER = re.compile(
    r"(?<![\w.:#-])(?P<currency>[$€£]\s?)?(?P<number>-?(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,9})?)(?!\.?\d|:\d)"
    r"(?:\s?(?P<unit>%|°\s?[CF]\b(?:/[^\W\d_]+)?|[cdk]?m[23²³](?!\w)|[^\W\d_]+(?:/[^\W\d_]+)?[²³]?))?"
)
_NUMBER_WORD = re.compile(r"\b(?P<number>two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+(?P<unit>[^\W\d_]+)", re.IGNORECASE)
_WORD_VALUES = {
    name: value
    for value, name in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}
_PIECES = re.compile(r"[;|]\s*|,\s+(?!\d{3}\b)|\s+(?:and|but|while|then|plus)\s+|\.\s+")
_FRAME = re.compile(
    r"\b(?:is|was|are|were|at|of|to|for|with|about|around|only|just|came|came to|reached|hit|cost|costs|equals?|=)\s*$", re.IGNORECASE
)


@dataclass(frozen=True)
class Quantity:
    """A number as written in a text at ``start``..``end``; ``unit`` is "" without one."""

    value: Decimal
    unit: str
    start: int
    end: int


@dataclass(frozen=True)
class Observation:
    """A quantity and the stems of the words it is a value of; ``heading`` holds those of the list it stands in."""

    label: frozenset[str]
    heading: frozenset[str]
    quantity: Quantity


@lru_cache(maxsize=50_000)
def quantities(text: str) -> tuple[Quantity, ...]:
    """The numbers of a text, in order; dates, clock times and ids are left out."""
    plain = without_dates(text)
    found = []
    for match in _NUMBER.finditer(plain):
        unit = match["unit"] or ""
        end = match.end()
        if unit and not _is_unit(unit):
            unit, end = "", match.end("number")
        currency = {"$": "USD", "€": "EUR", "£": "GBP"}.get((match["currency"] or "").strip(), "")
        found.append(Quantity(Decimal(match["number"].replace(",", "")), currency or unit, match.start(), end))
    for match in _NUMBER_WORD.finditer(plain):
        if _is_unit(match["unit"]):
            found.append(Quantity(Decimal(_WORD_VALUES[match["number"].casefold()]), match["unit"], match.start(), match.end()))
    return tuple(sorted(found, key=lambda quantity: quantity.start))


@lru_cache(maxsize=50_000)
def observations(text: str) -> tuple[Observation, ...]:
    """The label–value observations of a sentence: "label: value", "label value", "label was value", in lists too."""
    found: list[Observation] = []
    head, colon, rest = text.partition(": ")
    heading = stem_set(head) if colon and not quantities(head) and _label_before(rest, quantities(rest)) else frozenset()
    offset = len(head) + len(colon) if heading else 0
    start = offset
    for piece in [*_PIECES.finditer(text, offset), None]:
        end = piece.start() if piece else len(text)
        part = text[start:end]
        inside = quantities(part)
        for place, quantity in enumerate(inside):
            before = part[inside[place - 1].end if place else 0 : quantity.start]
            after = part[quantity.end : inside[place + 1].start if place + 1 < len(inside) else len(part)]
            label = stem_set(before) or stem_set(after)
            moved = Quantity(quantity.value, quantity.unit, quantity.start + start, quantity.end + start)
            found.append(Observation(label or heading, heading if label else frozenset(), moved))
        start = piece.end() if piece else end
    return tuple(found)


_DIMENSIONS = {
    "money": "eur usd gbp chf jpy cny dollar dollars euro euros pound pounds cents",
    "time": "s sec secs second seconds min mins minute minutes h hr hrs hour hours day days week weeks month months year years ms",
    "mass": "g kg mg t lb lbs oz gram grams kilo kilos kilogram kilograms pound pounds",
    "length": "m km cm mm mi ft mile miles metre metres meter meters kilometre kilometres kilometer kilometers feet inch inches",
    "volume": "l ml cl litre litres liter liters",
    "temperature": "°c °f degrees",
    "pressure": "bar mbar pa hpa kpa psi",
}
_DIMENSION_OF = {unit: name for name, units in _DIMENSIONS.items() for unit in units.split()}


def dimension_of(unit: str) -> str:
    """What a unit measures: money, time, mass, length, volume, temperature or pressure; "" for other units and none."""
    return _DIMENSION_OF.get(unit.casefold().replace(" ", ""), "")


def _label_before(text: str, found: tuple[Quantity, ...]) -> bool:
    return bool(found) and bool(stem_set(text[: found[0].start]))


def _is_unit(word: str) -> bool:
    plain = word.casefold()
    if word in {"%"} or word.startswith("°") or dimension_of(word) or (len(plain) <= 2 and plain not in FUNCTION_WORDS) or word.isupper():
        return True
    tags = lemmas(plain)
    return plain not in FUNCTION_WORDS and (not tags or "NOUN" in tags)
