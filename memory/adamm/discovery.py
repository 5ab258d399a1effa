"""Candidates for new schemas: the maximal sets of a round whose attributes belong together and that no schema contains."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory.adamm.maximal_sets import Tests, maximal_sets
from memory.adamm.supports import Supports, bits, members


@dataclass(frozen=True)
class _Proof:
    """Until round ``until``, every reliable set of a leader and attributes of ``tail`` is in one of ``sets`` or in a schema."""

    tail: int
    until: float
    sets: tuple[int, ...]


class Discovery:
    """Finds, round by round, the reliable sets that may become schemas.

    A set is reliable if its support is enough for its most frequent attribute, its leader (Eq. 4 and 6). Sets are searched for
    leader by leader. A search also proves for how many rounds its result will stand, since supports and thresholds change by at most
    one a round and schemas only ever grow; until then, rounds with the same leader and no new companion of it need no search.
    """

    def __init__(self, supports: Supports, thresholds: Sequence[int]) -> None:
        self._supports = supports
        self._thresholds = thresholds
        self._proofs: dict[int, _Proof] = {}

    def candidates(self, order: int, companions: Mapping[int, int], schemas: Iterable[int], tests: Tests) -> list[int]:
        """The present round's reliable sets of two and more attributes that no schema and no other such set contains.

        Args:
            order: the present round's.
            companions: by attribute of the round, those of the round that it is reliable with, as from `Supports.advance`.
            schemas: the sets of the living schemas' attributes. A schema may be left out only if a later one contains it.
            tests: of the round. Where they run out, what has been found by then is returned.
        """
        present = bits(companions)
        # Of a schema that shares fewer than two attributes with the round nothing matters here.
        inside = [shared for schema in schemas if (shared := schema & present) & (shared - 1)]
        companions = _uncovered(companions, inside)
        counts = self._supports.counts
        open_ = bits(companions)
        found: set[int] = set()
        for leader in sorted(companions, key=lambda attribute: (-counts[attribute], attribute)):
            open_ ^= 1 << leader
            tail = companions[leader] & open_
            if tail and not tests.capped:
                allowed = tail | 1 << leader
                found.update(allowed & some for some in self._sets(order, leader, tail, schemas, tests))
        maximal: list[int] = []
        for some in sorted(found, key=lambda some: (-some.bit_count(), some)):
            if some & (some - 1) and not any(some & other == some for other in (*inside, *maximal)):
                maximal.append(some)
        return maximal

    def _sets(self, order: int, leader: int, tail: int, schemas: Iterable[int], tests: Tests) -> tuple[int, ...]:
        """Reliable sets of the leader and others, among which all that are maximal in ``tail`` and in no schema."""
        supports = self._supports
        threshold = self._thresholds[supports.counts[leader]]
        proof = self._proofs.pop(leader, None)
        if proof and order <= proof.until:
            if not tail & ~proof.tail:
                self._proofs[leader] = proof
                return proof.sets
            # Searched along with what is new, what stood proved need not be searched again when the round after has it.
            tail |= bits(other for other in members(proof.tail & ~tail) if supports.together(leader, other) >= threshold)
        cover = _Cover()
        for schema in schemas:
            if schema >> leader & 1:
                cover.add(members(schema))
        tests.margin = float("inf")
        sets = []
        rounds = supports.columns[leader] & supports.seen
        for some, _ in maximal_sets(
            (leader,), rounds, list(members(tail)), threshold=threshold, columns=supports.columns, hopeless=cover.contains, tests=tests
        ):
            cover.add(some)
            sets.append(bits(some))
        if not tests.capped:
            self._proofs[leader] = _Proof(tail, order + tests.margin, tuple(sets))
        return tuple(sets)


class _Cover:
    """Sets of attributes, asked whether one of them contains another."""

    def __init__(self) -> None:
        self._n = 0
        self._holding: dict[int, int] = {}

    def add(self, attributes: Iterable[int]) -> None:
        for attribute in attributes:
            self._holding[attribute] = self._holding.get(attribute, 0) | 1 << self._n
        self._n += 1

    def contains(self, attributes: Iterable[int]) -> bool:
        holding = (1 << self._n) - 1
        for attribute in attributes:
            holding &= self._holding.get(attribute, 0)
            if not holding:
                return False
        return True


def _uncovered(companions: Mapping[int, int], schemas: Sequence[int]) -> dict[int, int]:
    """Leave out every attribute that can be in no set of interest: with all its companions it is in one schema."""
    companions = dict(companions)
    while True:
        covered = 0
        for attribute, others in companions.items():
            group = others | 1 << attribute
            if not others or any(group & schema == group for schema in schemas):
                covered |= 1 << attribute
        if not covered:
            return companions
        companions = {attribute: others & ~covered for attribute, others in companions.items() if not covered >> attribute & 1}
