"""Supports of attributes, pairs and sets of attributes, round by round (AdaMM, Eq. 3)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence


def bits(attributes: Iterable[int]) -> int:
    """Distinct attributes as a set."""
    return sum(1 << attribute for attribute in attributes)


def members(mask: int) -> Iterator[int]:
    """The attributes of a set, ascending."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


class Supports:
    """What has occurred, and together with what, up to the present round.

    Attributes are numbered in sorted order; those that occur in fewer than ``min_support`` of all rounds can be in no candidate and are
    left out. Sets of attributes are bits of an integer, and so are sets of rounds.

    Attributes:
        names: by number.
        columns: the rounds that hold an attribute, by number; with those that are yet to come.
        counts: rounds up to the present that hold an attribute, by number.
        present: the attributes of the present round, ascending.
        seen: the rounds up to the present.
    """

    def __init__(self, attribute_sets: Sequence[frozenset[str]], min_support: int) -> None:
        totals = Counter(name for names in attribute_sets for name in names)
        self.names = sorted(name for name, total in totals.items() if total >= min_support)
        numbers = {name: number for number, name in enumerate(self.names)}
        self._rounds = [tuple(sorted(numbers[name] for name in names if name in numbers)) for names in attribute_sets]
        columns = [bytearray(len(attribute_sets) // 8 + 1) for _ in self.names]
        for order, present in enumerate(self._rounds):
            for attribute in present:
                columns[attribute][order // 8] |= 1 << order % 8
        self.columns = [int.from_bytes(column, "little") for column in columns]
        self.counts = [0] * len(self.names)
        self._pairs: list[defaultdict[int, int]] = [defaultdict(int) for _ in self.names]
        self.present: tuple[int, ...] = ()
        self.seen = 0

    def rounds(self, attributes: Iterable[int]) -> int:
        """The rounds that hold all the attributes (at least one), with those that are yet to come."""
        rounds = -1
        for attribute in attributes:
            rounds &= self.columns[attribute]
        return rounds

    def together(self, one: int, other: int) -> int:
        """The support of two attributes."""
        return self._pairs[min(one, other)][max(one, other)]

    def advance(self, order: int, thresholds: Sequence[int]) -> dict[int, int]:
        """Make round ``order`` the present one; it must be the next.

        Args:
            order: of the round, from 0.
            thresholds: the support that a set needs, by the count of its most frequent attribute.

        Returns:
            By attribute of the round, in ascending order: those of the round that it is often enough together with.
        """
        self.present = present = self._rounds[order]
        self.seen = (2 << order) - 1
        for attribute in present:
            self.counts[attribute] += 1
        needs = [thresholds[self.counts[attribute]] for attribute in present]
        companions = dict.fromkeys(present, 0)
        for place, one in enumerate(present):
            row, need, bit, mine = self._pairs[one], needs[place], 1 << one, 0
            for other, other_need in zip(present[place + 1 :], needs[place + 1 :], strict=True):
                row[other] = together = row[other] + 1
                if together >= need and together >= other_need:
                    mine |= 1 << other
                    companions[other] |= bit
            companions[one] |= mine
        return companions
