"""The statements that the shown memories make: sentences of their texts, rows of their pictures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from data.images import Picture
from models.embedded.dates import DateRange, happened_on
from models.embedded.english import stem_set
from models.embedded.layout import layout_of
from models.embedded.ocr import Line, TextReader
from models.embedded.turns import read_turns
from models.tasks.answer import ShownMemory, ShownPicture

_BEFORE, _AFTER = 6, 2
"""How many sentences before and after one belong to its context, inside one exchange."""
_AFTER_FORM = re.compile(r"^\S+\s+(?P<id>\S+)$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the evidence.

    ``stems`` are those of its own content words, ``context`` those of what it stands in (the sentences around it in the
    exchange, the title of the picture). ``order`` counts statements through the evidence. ``label`` and ``value`` are
    those of a picture's row that has both.
    """

    text: str
    stems: frozenset[str]
    context: frozenset[str]
    date: str
    memory: int
    order: int
    speaker: str
    image_ids: tuple[str, ...]
    from_picture: bool
    label: str = ""
    value: str = ""


@dataclass(frozen=True)
class Evidence:
    """All statements, and the shown pictures by image id (an image may be shown whole and as a view)."""

    statements: tuple[Statement, ...]
    pictures: tuple[tuple[str, str, Picture], ...]
    """(image id, date, picture)."""

    def about(self, image_ids: frozenset[str]) -> "Evidence":
        """What is said of, and read in, some images; everything if nothing is."""
        near = tuple(one for one in self.statements if image_ids & frozenset(one.image_ids))
        return Evidence(near, self.pictures) if near else self

    def on(self, days: Sequence[DateRange]) -> "Evidence":
        """What was said on, or names, some days; everything if there are none."""
        if not days:
            return self
        told = tuple(
            one for one in self.statements if any(day.holds(one.date) or day.holds(happened_on(one.text, one.date)) for day in days)
        )
        return Evidence(tuple(told), self.pictures)

    def beside(self, image_ids: frozenset[str]) -> "Evidence":
        """What the memories that show or mention some images say of any image; everything if nothing is."""
        memories = {one.memory for one in self.statements if image_ids & frozenset(one.image_ids)}
        near = tuple(one for one in self.statements if one.memory in memories and one.image_ids)
        return Evidence(near, self.pictures) if near else self

    @property
    def years(self) -> frozenset[str]:
        """The years in which memories lie, four digits each."""
        return frozenset(statement.date[:4] for statement in self.statements if statement.date[:4].isdecimal())


def read_evidence(memories: Sequence[ShownMemory], reader: TextReader) -> Evidence:
    """Read every text and picture that the memories show."""
    statements: list[Statement] = []
    pictures: list[tuple[str, str, Picture]] = []
    for memory in memories:
        for item in memory.items:
            if isinstance(item, ShownPicture):
                pictures.append((item.image_id, memory.date, item.picture))
                for text, stems, context, label, value in _picture_statements(reader.lines(item.picture)):
                    place = len(statements)
                    shown = (item.image_id,)
                    statements.append(Statement(text, stems, context, memory.date, memory.number, place, "", shown, True, label, value))
            else:
                named = _AFTER_FORM.match(item.form)
                ids = (named["id"],) if named else ()
                for text, stems, context, speaker, image_ids in _text_statements(item.text):
                    place = len(statements)
                    statements.append(Statement(text, stems, context, memory.date, memory.number, place, speaker, ids or image_ids, False))
    return Evidence(tuple(_with_talk(statements)), tuple(pictures))


def _with_talk(statements: Sequence[Statement]) -> list[Statement]:
    """Add what the same memory's text says of an image to the context of what is read in it."""
    talk: dict[tuple[int, tuple[str, ...]], frozenset[str]] = {}
    for one in statements:
        if not one.from_picture and len(one.image_ids) == 1:
            key = (one.memory, one.image_ids)
            talk[key] = talk.get(key, frozenset()) | one.stems
    if not talk:
        return list(statements)
    nothing = frozenset[str]()
    return [
        replace(one, context=one.context | talk.get((one.memory, one.image_ids), nothing)) if one.from_picture else one
        for one in statements
    ]


@lru_cache(maxsize=20_000)
def _text_statements(text: str) -> tuple[tuple[str, frozenset[str], frozenset[str], str, tuple[str, ...]], ...]:
    sentences = read_turns(text)
    rows = []
    for place, one in enumerate(sentences):
        near = [other for other in sentences[max(0, place - _BEFORE) : place + _AFTER + 1] if other is not one and other.turn == one.turn]
        context = frozenset[str]().union(*(stem_set(other.text) for other in near))
        rows.append((one.text, stem_set(one.text), context, one.speaker, one.image_ids))
    return tuple(rows)


@lru_cache(maxsize=20_000)
def _picture_statements(lines: tuple[Line, ...]) -> tuple[tuple[str, frozenset[str], frozenset[str], str, str], ...]:
    layout = layout_of(lines)
    title = stem_set(layout.title)
    rows = [(layout.title, title, frozenset[str](), "", "")] if layout.title else []
    for row in layout.rows:
        text = f"{row.label}: {row.value}" if row.value else row.text
        rows.append((text, stem_set(text), title, row.label if row.value else "", row.value))
    return tuple(rows)
