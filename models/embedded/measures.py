"""Measured values as they are written: a number with its unit, a range of them, a compound ("5 h 30 min"), a clock time."""

import re
from dataclasses import dataclass
from functools import lru_cache

from models.embedded.dates import CLOCK
from models.embedded.english import lemmas
from models.embedded.quantities import Quantity, dimension_of, quantities

_BETWEEN = re.compile(r"\s?[-–—/]\s?|\s+to\s+|\s+")
_UNIT_TAIL = re.compile(r"(?:(?<=square)|(?<=cubic))\s+[^\W\d_]+|\s+per\s+[^\W\d_]+", re.IGNORECASE)


@dataclass(frozen=True)
class Measure:
    """A value at ``start``..``end`` of a text. ``unit`` is "" for a bare number, "clock" for a time of day."""

    start: int
    end: int
    unit: str

    @property
    def is_physical(self) -> bool:
        """Whether the unit measures something, rather than naming what is counted ("12 people")."""
        return bool(self.unit) and (bool(dimension_of(self.unit)) or not lemmas(self.unit.casefold()))


@lru_cache(maxsize=50_000)
def measures(text: str) -> tuple[Measure, ...]:
    """The measured values of a text, in order; number words and dates are left out."""
    found = [Measure(match.start(), match.end(), "clock") for match in CLOCK.finditer(text)]
    reached = 0
    for quantity in quantities(text):
        if quantity.start >= reached and any(letter.isdigit() for letter in text[quantity.start : quantity.end]):
            reached, unit = _whole(text, quantity)
            found.append(Measure(quantity.start, reached, unit))
    return tuple(sorted(found, key=lambda one: one.start))


def _whole(text: str, quantity: Quantity) -> tuple[int, str]:
    """Where a value ends that starts with a quantity, and its unit: ranges, compounds of units of time, "per" and all."""
    end, unit = quantity.end, quantity.unit
    while gap := _BETWEEN.match(text, end):
        following = quantities(text[gap.end() : gap.end() + 40])
        if not following or following[0].start > 0 or (gap.group().isspace() and not _goes_on(unit, following[0].unit)):
            break
        end, unit = gap.end() + following[0].end, following[0].unit or unit
    tail = _UNIT_TAIL.match(text, end)
    return (tail.end() if tail else end), unit


def _goes_on(unit: str, next_unit: str) -> bool:
    return dimension_of(unit) == dimension_of(next_unit) == "time"
