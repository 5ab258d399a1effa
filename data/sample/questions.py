"""Questions whose answers the text holds, with gold answers worked out from the world."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import combinations

from data.sample.draws import Draws, occurs
from data.sample.pictures import Content
from data.sample.vocabulary import Vocabulary
from data.sample.world import Event, Log, Placed, Share, Statement, World, make_event
from data.values import format_number

REFUSAL = "Not mentioned."


@dataclass(frozen=True)
class Asked:
    """A question, its gold answer and gold rounds; ``shown`` is the image id whose variant is the question's image, or ""."""

    category: str
    text: str
    answer: str
    rounds: tuple[str, ...]
    shown: str = ""


@dataclass(frozen=True)
class Source:
    """All that questions are made from: the world, its pictures' contents and everything that was said."""

    world: World
    contents: tuple[Content, ...]
    text: str
    draws: Draws
    vocabulary: Vocabulary

    @property
    def name(self) -> str:
        """The persona's first name."""
        return self.world.persona.name

    def events(self) -> list[tuple[Placed, Event]]:
        """Every event with its round."""
        return [(placed, placed.what) for placed in self.world.rounds if isinstance(placed.what, Event)]

    def ask(self, templates: Sequence[str], **values: str) -> str:
        """One of the wordings, filled."""
        return self.draws.choice(templates).format(**{"name": self.name, **values})


Maker = Callable[[Source], list[Asked]]


def headline_facts(source: Source) -> list[Asked]:
    """Facts that open a user's turn."""
    return _facts(source, headline=True)


def detail_facts(source: Source) -> list[Asked]:
    """Facts of later sentences, which a summary tends to drop."""
    return _facts(source, headline=False)


def _facts(source: Source, *, headline: bool) -> list[Asked]:
    asked = []
    for placed, event in source.events():
        for place in event.told:
            if (place == 0) == headline:
                for slot, wordings in event.kind.sentences[place].ask.items():
                    asked.append(Asked("factual", source.ask(wordings, **event.values), event.values[slot], (placed.round_id,)))
    return asked


def several_sessions(source: Source) -> list[Asked]:
    """Facts of two sessions put together: names, sums, comparisons."""
    asked = []
    for (first, a), (second, b) in combinations(source.events(), 2):
        if first.session == second.session:
            continue
        rounds = (first.round_id, second.round_id)
        if a.kind is b.kind:
            values = {f"a_{slot}": value for slot, value in a.values.items()} | {f"b_{slot}": value for slot, value in b.values.items()}
            for slot, template in a.kind.pairs.items():
                if slot in a.told_slots and slot in b.told_slots:
                    answer = f"{a.values[slot]} and {b.values[slot]}"
                    asked.append(Asked("multi_session", source.ask([template], **values), answer, rounds))
        asked += _costs(source, a, b, rounds)
    return asked


def _costs(source: Source, a: Event, b: Event, rounds: tuple[str, ...]) -> list[Asked]:
    asked = []
    for slot_a, slot_b in ((x, y) for x in a.kind.costs for y in b.kind.costs if x in a.told_slots and y in b.told_slots):
        names = [a.phrase(a.kind.costs[slot_a]), b.phrase(b.kind.costs[slot_b])]
        amounts = [_number(a.values[slot_a]), _number(b.values[slot_b])]
        both = " and ".join(names)
        sums = ["How much did {name} pay for {both} together?", "What did {both} cost {name} in total?"]
        total = format_number(sum(amounts), "EUR")
        asked.append(Asked("multi_session", source.ask(sums, both=both), total, rounds))
        dearer = names[amounts.index(max(amounts))]
        either = " or ".join(names)
        compare = ["Which cost {name} more, {either}?", "What was more expensive for {name}, {either}?"]
        asked.append(Asked("multi_session", source.ask(compare, either=either), dearer, rounds))
    return asked


def people_of_two_sessions(source: Source) -> list[Asked]:
    """The names of two people met in different sessions."""
    asked = []
    for (first, a), (second, b) in combinations(source.events(), 2):
        if first.session != second.session and a.kind is not b.kind:
            for x, y in ((x, y) for x in a.kind.people for y in b.kind.people if x in a.told_slots and y in b.told_slots):
                pair = f"{a.phrase(a.kind.people[x])} and {b.phrase(b.kind.people[y])}"
                text = source.ask(["What are the names of {pair}?"], pair=pair)
                if source.name in text:
                    asked.append(Asked("multi_session", text, f"{a.values[x]} and {b.values[y]}", (first.round_id, second.round_id)))
    return asked


def latest_values(source: Source) -> list[Asked]:
    """The present value of a fact that changed."""
    return [Asked("multi_session", source.ask(first.kind.ask), first.new, rounds) for first, rounds in _statements(source) if first.changed]


def conflicts(source: Source) -> list[Asked]:
    """Whether a value still holds, or a new one does, after a fact was changed or confirmed."""
    asked = []
    for fact, rounds in _statements(source):
        values = {"old": fact.old, "new": fact.new}
        asked.append(Asked("conflict", source.ask(fact.kind.still, **values), "No." if fact.changed else "Yes.", rounds))
        asked.append(Asked("conflict", source.ask(fact.kind.now, **values), "Yes." if fact.changed else "No.", rounds))
    return asked


def _statements(source: Source) -> list[tuple[Statement, tuple[str, ...]]]:
    told = [(placed, placed.what) for placed in source.world.rounds if isinstance(placed.what, Statement)]
    return [(fact, tuple(placed.round_id for placed, other in told if other.kind is fact.kind)) for _, fact in told if not fact.later]


def event_dates(source: Source) -> list[Asked]:
    """On which date something happened."""
    asked = []
    for placed, event in source.events():
        wordings = ["On which date did {name} {deed}?", "When did {name} {deed}? Give the date."]
        asked.append(Asked("temporal", source.ask(wordings, deed=event.phrase(event.kind.deed)), placed.date, (placed.round_id,)))
    return asked


def share_dates(source: Source) -> list[Asked]:
    """On which date a picture was shared."""
    asked = []
    for content in source.contents:
        about = source.draws.choice(content.about).replace(f" that {source.name} shared", "").replace(f"{source.name}'s ", "the ")
        text = source.ask(["On which date did {name} share {about}?"], about=about)
        asked.append(Asked("temporal", text, content.placed.date, (content.placed.round_id,)))
    return asked


def event_orders(source: Source) -> list[Asked]:
    """Which of two events came first."""
    asked = []
    for (first, a), (second, b) in combinations(source.events(), 2):
        if first.date < second.date:
            nouns = [a.phrase(a.kind.noun), b.phrase(b.kind.noun)]
            either = " or ".join(source.draws.shuffled(nouns))
            text = source.ask(["For {name}, which came first, {either}?", "What happened first in {name}'s life, {either}?"], either=either)
            asked.append(Asked("temporal", text, nouns[0], (first.round_id, second.round_id)))
    return asked


def event_gaps(source: Source) -> list[Asked]:
    """How many days lay between two events."""
    asked = []
    for (first, a), (second, b) in combinations(source.events(), 2):
        if first.date < second.date:
            days = (date.fromisoformat(second.date) - date.fromisoformat(first.date)).days
            both = f"{a.phrase(a.kind.noun)} and {b.phrase(b.kind.noun)}"
            wordings = ["For {name}, how many days lay between {both}?", "How many days passed for {name} between {both}?"]
            asked.append(Asked("temporal", source.ask(wordings, both=both), f"{days} days", (first.round_id, second.round_id)))
    return asked


def refusals(source: Source) -> list[Asked]:
    """Things that were never said: untold details of told events, and events that never happened."""
    asked = []
    for _, event in source.events():
        for place in range(len(event.kind.sentences)):
            if place not in event.told:
                for slot, wordings in event.kind.sentences[place].ask.items():
                    if not occurs(event.values[slot], source.text):
                        asked.append(Asked("refusal", source.ask(wordings, **event.values), REFUSAL, ()))
    for kind in source.vocabulary.events:
        stranger = make_event(source.draws, kind, name=source.name)
        for wordings in kind.sentences[0].ask.values():
            text = source.ask(wordings, **stranger.values)
            topics = [value for slot, value in stranger.values.items() if slot != "name" and value in text]
            if topics and not any(occurs(topic, source.text) for topic in topics):
                asked.append(Asked("refusal", text, REFUSAL, ()))
    return asked


def logged_fields(source: Source) -> list[tuple[Share, Content, str, list[tuple[Placed, Decimal]]]]:
    """Every dashboard field with its written readings, in order: (share, picture, label, [(round, number)])."""
    fields = []
    for content in source.contents:
        for label, _ in content.rows:
            readings = [
                (placed, _number(value))
                for placed in source.world.rounds
                if isinstance(placed.what, Log) and placed.what.kind is content.share.kind
                for name, value in placed.what.readings
                if name == label
            ]
            if readings:
                fields.append((content.share, content, label, readings))
    return fields


def _number(value: str) -> Decimal:
    return Decimal(value.split()[0])
