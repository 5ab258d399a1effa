"""Values for slots, drawn from a seeded generator: never the same name, pool entry or number twice in a history."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from data.values import format_number

_RANGE = re.compile(r"(?P<low>\d+(?:\.\d+)?)\.\.(?P<high>\d+(?:\.\d+)?)(?: (?P<unit>\S+))?")
_TRIES = 2000
T = TypeVar("T")


@dataclass(frozen=True)
class NumberRule:
    """Numbers from ``low`` to ``high`` inclusive, with ``decimals`` 0, 1 or 2 and a unit ("" for none)."""

    low: float
    high: float
    decimals: int
    unit: str


def number_rule(rule: str) -> NumberRule:
    """Read "low..high unit"; the numbers have as many decimals as ``low`` has.

    Raises:
        ValueError: the rule is not a range of numbers.
    """
    match = _RANGE.fullmatch(rule)
    if match is None:
        raise ValueError(f"the rule {rule!r} is not a range of numbers: write it as 'low..high unit'")
    return NumberRule(float(match["low"]), float(match["high"]), len(match["low"].partition(".")[2]), match["unit"] or "")


def occurs(phrase: str, text: str) -> bool:
    """Whether the phrase stands in the text as whole words, whatever the case: 92 is in "92.5 min", 2.5 is not."""
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE) is not None


class Draws:
    """The random source of one history.

    ``pools`` are the shared word lists; ``names`` holds the full names that earlier histories used and grows.
    """

    def __init__(self, rng: np.random.Generator, *, pools: Mapping[str, Sequence[str]], names: set[str]) -> None:
        """Start with nothing drawn."""
        self.rng = rng
        self._pools = pools
        self._names = names
        self._used: dict[str, list[str]] = {}

    def choice(self, options: Sequence[str]) -> str:
        """Any of the options."""
        return options[int(self.rng.integers(len(options)))]

    def fresh(self, options: Sequence[str], *, kind: str) -> str:
        """One of the options that this history has not used under ``kind`` yet; once all are used, they start afresh."""
        used = self._used.setdefault(kind, [])
        free = [option for option in options if option not in used]
        if not free:
            free = [option for option in options if option != used[-1]] or list(options)
            used.clear()
        used.append(self.choice(free))
        return used[-1]

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return bool(self.rng.random() < probability)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in random order."""
        return [items[int(i)] for i in self.rng.permutation(len(items))]

    def person(self) -> str:
        """A first name and surname that nobody else has, in this history or an earlier one."""
        for _ in range(_TRIES):
            first = self.fresh(self._pools["first_names"], kind="first name")
            name = f"{first} {self.fresh(self._pools['surnames'], kind='surname')}"
            if name not in self._names:
                self._names.add(name)
                return name
        raise ValueError("the sample has run out of people's names: ask for fewer histories")

    def number(self, rule: NumberRule, *, kind: str = "number", absent_from: str = "") -> str:
        """A formatted number that this history has not used under ``kind`` yet and that does not occur in a text."""
        used = self._used.setdefault(kind, [])
        scale = 10**rule.decimals
        low, high = round(rule.low * scale), round(rule.high * scale)
        for _ in range(_TRIES):
            value = format_number(int(self.rng.integers(low, high + 1)) / scale)
            if value in used or occurs(value, absent_from) or len(value.partition(".")[2]) != rule.decimals:
                continue
            used.append(value)
            return f"{value} {rule.unit}" if rule.unit else value
        raise ValueError(f"no unused number is left for the rule {rule}")

    def slot(self, rule: str | Sequence[str], *, kind: str) -> str:
        """A value for a slot: one of a list, a person, a time of day, a number of a range, or an entry of a pool."""
        if not isinstance(rule, str):
            return self.fresh(rule, kind=kind)
        if rule == "person":
            return self.person()
        if rule == "time":
            times = [f"{hour}:{minute:02d}" for hour in range(8, 20) for minute in range(0, 60, 5)]
            return self.fresh(times, kind="time")
        return self.number(number_rule(rule)) if _RANGE.fullmatch(rule) else self.fresh(self._pools[rule], kind=rule)

    def reading(self, field: str, *, kind: str, absent_from: str = "") -> tuple[str, str]:
        """The label of a field "label: low..high unit" and a number for it, see `number`."""
        label, _, rule = field.partition(": ")
        return label, self.number(number_rule(rule), kind=kind, absent_from=absent_from)
