"""A page of what was remembered of a history: its rounds, pictures, views, anchors, tables and topics."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.history import History, ImageRef, Round, Session
from data.images import Picture, load_picture
from data.typed_values import show_value
from envs.evaluation.html_page import write_html
from envs.evaluation.losses import losses
from envs.evaluation.schema_log import table_log
from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory, Table
from memory.bank import EpisodeImage, MemoryBank, MemoryEpisode
from memory.duckdb_file import quoted

_MAX_ROWS = 200
_MAX_SIDE = 320
_JPEG_QUALITY = 80
_QUERY_SECONDS = 10.0


@dataclass(frozen=True)
class Thumbnail:
    """A picture that is in the page: its data URL, width and height in pixels."""

    url: str
    width: int
    height: int

    @classmethod
    def of(cls, picture: Picture) -> "Thumbnail":
        """A JPEG of at most `_MAX_SIDE` pixels a side."""
        pixels = picture.pixels()
        pixels.thumbnail((_MAX_SIDE, _MAX_SIDE))
        file = io.BytesIO()
        pixels.save(file, format="JPEG", quality=_JPEG_QUALITY)
        return cls("data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode(), *pixels.size)


@dataclass(frozen=True)
class ShownImage:
    """An image with the caption that is remembered; None for a picture or a view that there is none of."""

    id: str
    caption: str
    picture: Thumbnail | None
    view: Thumbnail | None


@dataclass(frozen=True)
class ShownRound:
    """A round; ``order`` counts from 0 through the history and is what rows of tables link to."""

    order: int
    round: Round
    images: tuple[ShownImage, ...]


@dataclass(frozen=True)
class Stretch:
    """Rounds of one session that make up a memory episode, or, without HiVe-Mem's part, all of them."""

    episode: MemoryEpisode | None
    rounds: tuple[ShownRound, ...]


@dataclass(frozen=True)
class ShownCell:
    """A cell as text; "" where there is no value, and then ``unusable`` is the source text that could not be one."""

    text: str
    unusable: str


@dataclass(frozen=True)
class ShownRow:
    """A row of a table: its round, its session's date, and its data cells."""

    order: int
    date: str
    source: str
    cells: tuple[ShownCell, ...]


@dataclass(frozen=True)
class ShownTable:
    """An induced table with its first rows, and what made it."""

    table: Table
    rows: tuple[ShownRow, ...]
    log: Sequence[str]


def write_gallery(path: Path, history: History, *, bank: MemoryBank | None, adamm: AdaMMMemory | None, embedded: bool) -> None:
    """Write the page aside and rename it: one file that fetches nothing, with small pictures inside.

    Args:
        path: the HTML file.
        history: what was remembered; whatever it says is escaped.
        bank: HiVe-Mem's part, None where it was not built.
        adamm: AdaMM's part, None where it was not built.
        embedded: whether the embedded engine built the memory, which the page says.

    Raises:
        data.errors.ImageError: an image file has gone or is damaged.
        memory.errors.BankError: the database of AdaMM's part has gone or is damaged.
    """
    write_html(
        path,
        "gallery.html",
        history=history,
        sessions=list(_sessions(history, bank)),
        bank=bank,
        adamm=adamm,
        tables=[] if adamm is None else _tables(adamm),
        missing=[(name, losses(part.counts)) for name, part in (("HiVe-Mem", bank), ("AdaMM", adamm)) if part is not None],
        embedded=embedded,
    )


def _sessions(history: History, bank: MemoryBank | None) -> Iterator[tuple[Session, list[Stretch]]]:
    episode_of = {round_id: episode for episode in bank.episodes for round_id in episode.round_ids} if bank else {}
    remembered = {image.id: image for episode in bank.episodes for image in episode.images} if bank else {}
    order = 0
    for session in history.sessions:
        stretches: list[Stretch] = []
        for round_ in session.rounds:
            episode = episode_of.get(round_.id)
            shown = ShownRound(order, round_, tuple(_image(image, remembered) for image in round_.images))
            order += 1
            if stretches and stretches[-1].episode is episode:
                stretches[-1] = Stretch(episode, (*stretches[-1].rounds, shown))
            else:
                stretches.append(Stretch(episode, (shown,)))
        yield session, stretches


def _image(image: ImageRef, remembered: Mapping[str, EpisodeImage]) -> ShownImage:
    known = remembered.get(image.id)
    view = None if known is None or known.view is None else Thumbnail.of(known.view)
    picture = None if image.path is None else Thumbnail.of(load_picture(image.path))
    return ShownImage(image.id, image.caption if known is None else known.caption, picture, view)


def _tables(memory: AdaMMMemory) -> list[ShownTable]:
    store = TableStore(memory.folder / DATABASE, timeout_seconds=_QUERY_SECONDS)
    return [ShownTable(table, tuple(_rows(table, store)), table_log(memory, table.schema)) for table in memory.tables]


def _rows(table: Table, store: TableStore) -> Iterator[ShownRow]:
    """The first rows, and in their empty cells what could not be used."""
    unusable = {
        (name, order): value
        for name, order, value in store.query(
            """SELECT column_name, round_order, value FROM cells JOIN observations USING (round_order, position)
            WHERE table_name = ? AND filled AND NOT usable""",
            [table.name],
        )
    }
    names = ", ".join(quoted(name) for name in ("round_order", "time", "source", *(column.name for column in table.columns)))
    for order, day, source, *values in store.query(
        f"SELECT {names} FROM induced.{quoted(table.name)} ORDER BY round_order LIMIT {_MAX_ROWS}", ()
    ):
        cells = (
            ShownCell(
                "" if value is None else show_value(value, column.type, column.unit),
                unusable.get((column.name, order), "") if value is None else "",
            )
            for column, value in zip(table.columns, values, strict=True)
        )
        yield ShownRow(order, "" if day is None else day.isoformat(), source, tuple(cells))
