"""The words of the sample: pools, kinds of events, updates, dashboards and pictures, and small talk, read from TOML files."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "vocabulary"

Texts = tuple[str, ...]


@dataclass(frozen=True)
class SentenceKind:
    """A sentence in several wordings, and for every slot that it tells the questions about that slot."""

    say: Texts
    ask: Mapping[str, Texts]


@dataclass(frozen=True)
class EventKind:
    """Something that happens to a persona, ``most`` times in a history.

    ``slots`` maps a slot to a rule that `data.sample.draws` draws from. ``noun`` and ``deed`` name the event in questions
    ("the kettle purchase", "buy the kettle"). ``people`` and ``costs`` describe slots whose values can be listed or added up
    over events; ``pairs`` asks for a slot's values in two events of the kind ("a_" and "b_" stand before slots there). The
    first of ``sentences`` is the headline.
    """

    name: str
    most: int
    noun: str
    deed: str
    slots: Mapping[str, str | Texts]
    people: Mapping[str, str]
    costs: Mapping[str, str]
    pairs: Mapping[str, str]
    replies: Texts
    sentences: tuple[SentenceKind, ...]


@dataclass(frozen=True)
class UpdateKind:
    """A fact that is stated once and later changed to another value of ``slot``, or confirmed."""

    name: str
    slot: str
    first: Texts
    change: Texts
    confirm: Texts
    still: Texts
    now: Texts
    ask: Texts


@dataclass(frozen=True)
class DashboardKind:
    """A dashboard: ``fields`` are rules "label: low..high unit"."""

    name: str
    title: str
    fields: Texts
    intros: Texts
    shared: Texts
    replies: Texts


@dataclass(frozen=True)
class PictureKind:
    """A picture that is not a dashboard: pairs of a label and a value, both of which stand only in its pixels.

    ``setting`` draws the one slot (``setting_name``) that tells pictures of a kind apart, such as the cafe of a receipt.
    """

    name: str
    noun: str
    about: Texts
    caption: Texts
    shared: Texts
    setting_name: str
    setting: str | Texts
    labels: Texts
    value: str
    asks: Texts
    which: Texts
    extreme: Texts
    total: Texts


@dataclass(frozen=True)
class Vocabulary:
    """Everything the generator can say."""

    pools: Mapping[str, Texts]
    events: tuple[EventKind, ...]
    updates: tuple[UpdateKind, ...]
    dashboards: tuple[DashboardKind, ...]
    pictures: tuple[PictureKind, ...]
    talk: Mapping[str, Texts]


@cache
def load_vocabulary() -> Vocabulary:
    """Read the TOML files beside this module."""
    events = [_event(name, entry) for file in sorted(FOLDER.glob("events_*.toml")) for name, entry in _read(file).items()]
    updates = [
        UpdateKind(name, entry["slot"], *(tuple(entry[field]) for field in ("first", "change", "confirm", "still", "now", "ask")))
        for name, entry in _read(FOLDER / "updates.toml").items()
    ]
    dashboards = [
        DashboardKind(name, entry["title"], *(tuple(entry[field]) for field in ("fields", "intros", "shared", "replies")))
        for name, entry in _read(FOLDER / "dashboards.toml").items()
    ]
    pictures = [_picture(name, entry) for name, entry in _read(FOLDER / "pictures.toml").items()]
    return Vocabulary(
        _texts(_read(FOLDER / "pools.toml")),
        tuple(events),
        tuple(updates),
        tuple(dashboards),
        tuple(pictures),
        _texts(_read(FOLDER / "talk.toml")),
    )


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _texts(entries: Mapping[str, Sequence[str]]) -> dict[str, Texts]:
    return {name: tuple(texts) for name, texts in entries.items()}


def _event(name: str, entry: Mapping[str, Any]) -> EventKind:
    slots = {slot: rule if isinstance(rule, str) else tuple(rule) for slot, rule in entry["slots"].items()}
    sentences = tuple(SentenceKind(tuple(part["say"]), _texts(part["ask"])) for part in entry["sentences"])
    return EventKind(
        name,
        entry["most"],
        entry["noun"],
        entry["deed"],
        slots,
        entry.get("people", {}),
        entry.get("costs", {}),
        entry.get("pairs", {}),
        tuple(entry["replies"]),
        sentences,
    )


def _picture(name: str, entry: Mapping[str, Any]) -> PictureKind:
    setting_name = next(key for key in ("place", "topic", "thing") if key in entry)
    setting = entry[setting_name]
    return PictureKind(
        name=name,
        noun=entry["noun"],
        about=tuple(entry["about"]),
        caption=tuple(entry["caption"]),
        shared=tuple(entry["shared"]),
        setting_name=setting_name,
        setting=setting if isinstance(setting, str) else tuple(setting),
        labels=tuple(entry["labels"]),
        value=entry["value"],
        asks=tuple(entry["asks"]),
        which=tuple(entry["which"]),
        extreme=tuple(entry.get("extreme", ())),
        total=tuple(entry.get("total", ())),
    )
