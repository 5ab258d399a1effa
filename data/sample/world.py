"""The truth of one history: who the persona is, what happens in which round, and what each round tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from data.sample.draws import Draws
from data.sample.vocabulary import DashboardKind, EventKind, PictureKind, UpdateKind, Vocabulary

ROUNDS_PER_SESSION = (8, 7, 8, 7, 8, 7, 8, 7)
LOGS_PER_DASHBOARD = 4
N_DASHBOARDS = 3
N_OTHER_PICTURES = 3
N_CHANGED, N_CONFIRMED = 3, 2
_DETAILS_PER_EVENT = 2


@dataclass(frozen=True)
class Persona:
    """Whose history it is."""

    name: str
    surname: str
    job: str
    town: str
    traits: tuple[str, ...]


@dataclass(frozen=True)
class Event:
    """A kind of event with its slot values; ``told`` are the sentences that the user says, the headline (0) first."""

    kind: EventKind
    values: Mapping[str, str]
    told: tuple[int, ...]

    def phrase(self, template: str, **more: str) -> str:
        """Fill a template with this event's values."""
        return template.format(**{**self.values, **more})

    @property
    def told_slots(self) -> tuple[str, ...]:
        """The slots that the told sentences tell, in order."""
        return tuple(slot for place in self.told for slot in self.kind.sentences[place].ask)


@dataclass(frozen=True)
class Log:
    """A dashboard's fields written out in words: (label, value with unit) pairs."""

    kind: DashboardKind
    readings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Share:
    """A picture shared in a round. ``fields`` are a dashboard's rules; ``setting`` tells other pictures of a kind apart."""

    kind: DashboardKind | PictureKind
    companion: str
    setting: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """A fact stated first, or stated later as changed or confirmed. ``new`` is the changed value, or one never said."""

    kind: UpdateKind
    old: str
    new: str
    changed: bool
    later: bool


Happening = Event | Log | Share | Statement


@dataclass(frozen=True)
class Placed:
    """A happening in its round."""

    session: int
    round_id: str
    date: str
    what: Happening


@dataclass(frozen=True)
class World:
    """The truth of one history, in round order."""

    persona: Persona
    dates: tuple[str, ...]
    rounds: tuple[Placed, ...]


def make_world(draws: Draws, *, vocabulary: Vocabulary, name: str) -> World:
    """Draw a history's persona, dates and happenings, and put every happening into a round."""
    surname = draws.person().split()[1]
    job, town = draws.choice(vocabulary.pools["jobs"]), draws.fresh(vocabulary.pools["towns"], kind="towns")
    persona = Persona(name, surname, job, town, tuple(draws.shuffled(vocabulary.pools["traits"])[:3]))
    dates = _dates(draws)
    sessions = _Sessions(draws, [ROUNDS_PER_SESSION[int(i)] for i in draws.rng.permutation(len(ROUNDS_PER_SESSION))])
    _place_pictures_and_logs(draws, vocabulary, sessions)
    _place_statements(draws, vocabulary, sessions)
    _place_events(draws, vocabulary, sessions, name)
    rounds = [
        Placed(session, f"D{session + 1}:{place}", dates[session], what)
        for session, happenings in enumerate(sessions.happenings)
        for place, what in enumerate(draws.shuffled(happenings), start=1)
    ]
    return World(persona, dates, tuple(rounds))


def make_event(draws: Draws, kind: EventKind, *, name: str) -> Event:
    """Draw the slot values of an event and which of its sentences are told; ``name`` is the persona's."""
    values = {"name": name} | {slot: draws.slot(rule, kind=f"{kind.name}.{slot}") for slot, rule in kind.slots.items()}
    values |= {f"{slot}_first": values[slot].split()[0] for slot, rule in kind.slots.items() if rule == "person"}
    details = draws.shuffled(range(1, len(kind.sentences)))[:_DETAILS_PER_EVENT]
    return Event(kind, values, (0, *sorted(details)))


class _Sessions:
    """The sessions while they are being filled."""

    def __init__(self, draws: Draws, capacities: list[int]) -> None:
        self._draws = draws
        self._capacities = capacities
        self.happenings: list[list[Happening]] = [[] for _ in capacities]

    @property
    def n_free(self) -> int:
        return sum(capacity - len(filled) for capacity, filled in zip(self._capacities, self.happenings, strict=True))

    def emptiest(self, n: int, *, without: frozenset[int] = frozenset()) -> list[int]:
        """``n`` different sessions, those with most free places first, ties at random."""
        open_sessions = [s for s in self._draws.shuffled(range(len(self._capacities))) if s not in without]
        return sorted(open_sessions, key=lambda s: len(self.happenings[s]) - self._capacities[s])[:n]

    def add(self, session: int, what: Happening) -> None:
        if len(self.happenings[session]) >= self._capacities[session]:
            raise ValueError(f"session {session} is full")
        self.happenings[session].append(what)


def _dates(draws: Draws) -> tuple[str, ...]:
    day = date(2031, 1, 10) + timedelta(days=int(draws.rng.integers(0, 700)))
    dates = []
    for _ in ROUNDS_PER_SESSION:
        dates.append(day.isoformat())
        day += timedelta(days=int(draws.rng.integers(4, 15)))
    return tuple(dates)


def _place_pictures_and_logs(draws: Draws, vocabulary: Vocabulary, sessions: _Sessions) -> None:
    places = draws.shuffled(range(len(ROUNDS_PER_SESSION)))
    for kind in draws.shuffled(vocabulary.dashboards)[:N_DASHBOARDS]:
        fields = draws.shuffled(kind.fields)[: 5 + int(draws.chance(0.6))]
        fields = [field for field in kind.fields if field in fields]
        session = places.pop()
        sessions.add(session, Share(kind, draws.person(), "", tuple(fields)))
        skipped = draws.choice(fields)  # by one log at most, so that all fields stand together in four rounds, enough for a table
        for number, log_session in enumerate(sessions.emptiest(LOGS_PER_DASHBOARD, without=frozenset({session}))):
            readings = [draws.reading(field, kind=field) for field in fields if field != skipped or number or draws.chance(0.5)]
            sessions.add(log_session, Log(kind, tuple(readings)))
    for other in draws.shuffled(vocabulary.pictures)[:N_OTHER_PICTURES]:
        setting = draws.slot(other.setting, kind=f"{other.name} setting")
        sessions.add(places.pop(), Share(other, draws.person(), setting, ()))


def _place_statements(draws: Draws, vocabulary: Vocabulary, sessions: _Sessions) -> None:
    for number, kind in enumerate(draws.shuffled(vocabulary.updates)[: N_CHANGED + N_CONFIRMED]):
        old, new = (draws.slot(kind.slot, kind=f"{kind.name}.slot") for _ in range(2))
        first, later = sorted(sessions.emptiest(2))
        sessions.add(first, Statement(kind, old, new, number < N_CHANGED, later=False))
        sessions.add(later, Statement(kind, old, new, number < N_CHANGED, later=True))


def _place_events(draws: Draws, vocabulary: Vocabulary, sessions: _Sessions, name: str) -> None:
    instances = [kind for kind in vocabulary.events for _ in range(kind.most)]
    for kind in draws.shuffled(instances)[: sessions.n_free]:
        sessions.add(sessions.emptiest(1)[0], make_event(draws, kind, name=name))
    if sessions.n_free:
        raise ValueError(f"the vocabulary has too few kinds of events: {sessions.n_free} rounds stay empty")
