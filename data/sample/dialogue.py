"""What the user and the assistant say in every round of a world."""

import re
from dataclasses import dataclass

from data.sample.draws import Draws
from data.sample.vocabulary import DashboardKind, Vocabulary
from data.sample.world import Event, Log, Placed, Share, Statement, World


@dataclass(frozen=True)
class Exchange:
    """The two texts of a round."""

    user: str
    assistant: str


def write_dialogue(world: World, *, draws: Draws, vocabulary: Vocabulary) -> dict[str, Exchange]:
    """Write every round; round id to its exchange, in round order."""
    writer = _Writer(draws, vocabulary)
    return {placed.round_id: writer.exchange(placed) for placed in world.rounds}


class _Writer:
    def __init__(self, draws: Draws, vocabulary: Vocabulary) -> None:
        self._draws = draws
        self._talk = vocabulary.talk

    def exchange(self, placed: Placed) -> Exchange:
        what = placed.what
        if isinstance(what, Event):
            return self._event(what)
        if isinstance(what, Log):
            return self._log(what)
        return self._share(what) if isinstance(what, Share) else self._statement(what)

    def _chat(self, topic: str) -> str:
        return self._draws.fresh(self._talk[topic], kind=f"talk {topic}")

    def _event(self, event: Event) -> Exchange:
        said = [event.phrase(self._draws.choice(event.kind.sentences[place].say)) for place in event.told]
        if self._draws.chance(0.2):
            said.append(self._chat("user_chat"))
        return Exchange(_joined(said), _joined([event.phrase(self._draws.fresh(event.kind.replies, kind=f"reply {event.kind.name}"))]))

    def _log(self, log: Log) -> Exchange:
        half = (len(log.readings) + 1) // 2
        intro = self._draws.fresh(log.kind.intros, kind=f"intro {log.kind.name}")
        style = self._draws.choice(["{} {}", "{} at {}"] if intro.endswith(":") else ["{} {}", "{}: {}"])
        pairs = [style.format(*reading) for reading in log.readings]
        said = [f"{intro} {_listed(pairs[:half])}.", f"{self._draws.choice(['Also ', 'Then ', ''])}{_listed(pairs[half:])}."]
        said.append(self._chat("log_chat"))
        return Exchange(_joined(said), _joined([self._draws.fresh(log.kind.replies, kind=f"reply {log.kind.name}")]))

    def _share(self, share: Share) -> Exchange:
        opening = self._draws.choice(share.kind.shared)
        if not isinstance(share.kind, DashboardKind):
            opening = opening.format(**{share.kind.setting_name: share.setting})
        said = [opening, self._chat("companions").format(companion=share.companion), self._chat("picture_chat")]
        return Exchange(_joined(said), self._chat("picture_replies"))

    def _statement(self, statement: Statement) -> Exchange:
        options = statement.kind.first
        if statement.later:
            options = statement.kind.change if statement.changed else statement.kind.confirm
        fact = self._draws.choice(options).format(old=statement.old, new=statement.new)
        return Exchange(_joined([fact, self._chat("update_chat"), self._chat("update_chat")]), self._chat("update_replies"))


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _joined(sentences: list[str]) -> str:
    """Sentences in a row, with capitals at their beginnings and "an" before vowels."""
    text = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
    return re.sub(r"\b([Aa]) (?=[AEIOaeio])", r"\1n ", text)
