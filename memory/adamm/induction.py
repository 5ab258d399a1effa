"""Schema induction (AdaMM, §3.3.2): which attributes keep occurring together and so become the columns of a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from memory.adamm.discovery import Discovery
from memory.adamm.maximal_sets import Tests, maximal_sets
from memory.adamm.model import EventKind, Schema, SchemaEvent
from memory.adamm.supports import Supports, bits, members


@dataclass(frozen=True)
class Induction:
    """What was induced: the schemas that live after the last round, in order of creation, and what happened, in order."""

    schemas: tuple[Schema, ...]
    events: tuple[SchemaEvent, ...]


def induce(
    attribute_sets: Sequence[frozenset[str]], *, min_support: int, min_all_conf: float, min_ext_conf: float, max_tested: int = 100_000
) -> Induction:
    """Induce schemas from the rounds' attributes, chronologically: what happens at a round depends on no later one (Eq. 2 to 7).

    The candidates of a round are the sets of at least two of its attributes that ``min_support`` rounds up to it hold. Each round:

    1. Evolution. Every schema, in order of creation, becomes the candidate with most attributes, then the highest support, then
       first in sorted order, among those that contain it and are in ``min_ext_conf`` of its rounds (event ``extended``, with that share).
    2. Merge. A schema that is now within another is dropped; of equal ones the earliest stays (``merged``, with the number of the
       first schema that it is within).
    3. Discovery. Candidates in ``min_all_conf`` of the rounds of each of their attributes that no schema and no other of them contains
       become schemas (``discovered``, with the lowest such share), except those that contain a schema (``rejected``, with their share
       of its rounds, once for a set and a schema as it is).

    A round whose searches reach ``max_tested`` sets stops them, always at the same place, and goes on with what they found (``capped``).
    Shares are compared exactly: 0.6 means six tenths.

    Args:
        attribute_sets: one a round, A_t of Eq. 2.
        min_support: θ_s, rounds, at least 1.
        min_all_conf: θ_a, above 0, at most 1.
        min_ext_conf: θ_e, above 0, at most 1.
        max_tested: sets whose support a round's searches may count, at least 1.

    Raises:
        ValueError: a threshold is out of its range; says all that are.
    """
    problems = [f"min_support must be at least 1, got {min_support}"] if min_support < 1 else []
    problems += [
        f"{name} must be above 0 and at most 1, got {share}"
        for name, share in (("min_all_conf", min_all_conf), ("min_ext_conf", min_ext_conf))
        if not 0 < share <= 1
    ]
    problems += [f"max_tested must be at least 1, got {max_tested}"] if max_tested < 1 else []
    if problems:
        raise ValueError("; ".join(problems))
    run = _Run(Supports(attribute_sets, min_support), len(attribute_sets), min_support, min_all_conf, min_ext_conf, max_tested)
    for order in range(len(attribute_sets)):
        run.step(order)
    schemas = tuple(Schema(schema.number, run.names(schema.attributes)) for schema in run.living)
    return Induction(schemas, tuple(run.events))


@dataclass
class _Living:
    """A schema: its attributes in the order of columns and as a set, all rounds that hold them, its support at present.

    ``together`` are its supports with one more attribute each, as far as they were needed.
    """

    number: int
    attributes: tuple[int, ...]
    mask: int
    rounds: int
    support: int
    together: dict[int, int] = field(default_factory=dict)


class _Run:
    def __init__(
        self, supports: Supports, n_rounds: int, min_support: int, min_all_conf: float, min_ext_conf: float, max_tested: int
    ) -> None:
        self.supports = supports
        self.living: list[_Living] = []
        self.events: list[SchemaEvent] = []
        self._max_tested = max_tested
        self._all_conf = _thresholds(min_support, min_all_conf, n_rounds)
        self._ext_conf = _thresholds(min_support, min_ext_conf, n_rounds)
        self._discovery = Discovery(supports, self._all_conf)
        self._n_created = 0
        self._rejected: set[tuple[int, int]] = set()
        self._order = 0
        self._tests = Tests(max_tested)

    def names(self, attributes: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.supports.names[attribute] for attribute in attributes)

    def step(self, order: int) -> None:
        self._order, self._tests = order, Tests(self._max_tested)
        companions = self.supports.advance(order, self._all_conf)
        present = bits(companions)
        grown = [schema for schema in self.living if schema.mask & present == schema.mask and self._evolve(schema)]
        if grown:
            self._merge(grown)
        self._discover(companions)
        if self._tests.capped:
            self._log("capped", None, (), "tested", self._tests.done)

    def _evolve(self, schema: _Living) -> bool:
        """Count a round that holds the schema, and extend the schema if it can be."""
        supports = self.supports
        schema.support += 1
        need = self._ext_conf[schema.support]
        joining = [attribute for attribute in supports.present if self._support_with(schema, attribute) >= need]
        if not joining or self._tests.capped:
            return False
        best: tuple[int, int, tuple[int, ...]] = (0, 0, ())

        def smaller(attributes: tuple[int, ...]) -> bool:
            return len(attributes) < -best[0]

        rounds = schema.rounds & supports.seen
        for some, shared in maximal_sets(
            schema.attributes, rounds, joining, threshold=need, columns=supports.columns, hopeless=smaller, tests=self._tests
        ):
            best = min(best, (-len(some), -shared.bit_count(), tuple(sorted(some))))
        if not best[0]:
            return False
        share = -best[1] / schema.support
        new = tuple(attribute for attribute in best[2] if not schema.mask >> attribute & 1)
        schema.attributes += new
        schema.mask |= bits(new)
        schema.rounds &= supports.rounds(new)
        schema.support = -best[1]
        schema.together = {}
        self._log("extended", schema.number, schema.attributes, "ext_conf", share)
        return True

    def _support_with(self, schema: _Living, attribute: int) -> int:
        """The support of the schema and one more of the round's attributes, asked once a round that holds both; 0 for its own."""
        if schema.mask >> attribute & 1:
            return 0
        support = schema.together.get(attribute, -1) + 1
        if not support:
            support = (schema.rounds & self.supports.columns[attribute] & self.supports.seen).bit_count()
        schema.together[attribute] = support
        return support

    def _merge(self, grown: Sequence[_Living]) -> None:
        """Drop what is within one of the schemas that have just grown; nothing can be within another."""

        def within(one: _Living, other: _Living) -> bool:
            return one.mask & other.mask == one.mask and (one.mask != other.mask or other.number < one.number)

        largest = [schema for schema in grown if not any(within(schema, other) for other in grown)]
        kept = []
        for schema in self.living:
            larger = next((other for other in largest if within(schema, other)), None)
            if larger:
                self._log("merged", schema.number, schema.attributes, "into", larger.number)
            else:
                kept.append(schema)
        self.living = kept

    def _discover(self, companions: dict[int, int]) -> None:
        schemas = [schema.mask for schema in self.living]
        candidates = self._discovery.candidates(self._order, companions, schemas, self._tests)
        admitted = []
        for attributes, mask in sorted((tuple(members(mask)), mask) for mask in candidates):
            rounds = self.supports.rounds(attributes)
            support = (rounds & self.supports.seen).bit_count()
            within = [schema for schema in self.living if schema.mask & mask == schema.mask]
            for schema in within:
                if (mask, schema.mask) not in self._rejected:
                    self._rejected.add((mask, schema.mask))
                    self._log("rejected", schema.number, attributes, "ext_conf", support / schema.support)
            if not within:
                admitted.append((attributes, mask, rounds, support))
        for attributes, mask, rounds, support in admitted:
            self.living.append(_Living(self._n_created, attributes, mask, rounds, support))
            most = max(self.supports.counts[attribute] for attribute in attributes)
            self._log("discovered", self._n_created, attributes, "all_conf", support / most)
            self._n_created += 1

    def _log(self, kind: EventKind, number: int | None, attributes: Iterable[int], measure: str, value: float) -> None:
        self.events.append(SchemaEvent(self._order, kind, number, self.names(attributes), measure, value))


def _thresholds(min_support: int, share: float, n_rounds: int) -> list[int]:
    """The least support that is ``share`` of a count and at least ``min_support``, by count up to ``n_rounds``."""
    exact = Fraction(str(share))
    return [max(min_support, -(-count * exact.numerator // exact.denominator)) for count in range(n_rounds + 1)]
