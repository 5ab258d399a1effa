"""Prints what was remembered of a history."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from data.history import History
from envs.evaluation.losses import losses
from envs.evaluation.plain import one_line
from envs.evaluation.schema_log import MEASURES, events_line, table_log
from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory, Node
from memory.adamm.model import Table as InducedTable
from memory.bank import MemoryBank, MemoryEpisode
from memory.duckdb_file import quoted

_QUERY_SECONDS = 10.0
_N_ANCHORS = 8
_MAX_NAME = 24


def print_memory(history: History, *, bank: MemoryBank | None, adamm: AdaMMMemory | None, console: Console) -> None:
    """Print both parts of a memory: what they hold, why it is there, and what was dropped.

    Args:
        history: what was remembered; whatever it says is printed as plain text.
        bank: HiVe-Mem's part, None where it was not built.
        adamm: AdaMM's part, None where it was not built.
        console: where to print; 80 columns are enough.

    Raises:
        memory.errors.BankError: the database of AdaMM's part has gone or is damaged.
    """
    images = list(history.images)
    n_missing = sum(image.path is None for image in images)
    n_rounds = sum(len(session.rounds) for session in history.sessions)
    counted = f"{len(history.sessions)} sessions, {n_rounds} rounds, {len(images)} images ({n_missing} without a file)"
    console.print(_text(f"{history.id}: {counted}", "bold"))
    if bank is not None:
        _print_bank(bank, console)
    if adamm is not None:
        _print_adamm(adamm, console)


def _print_bank(bank: MemoryBank, console: Console) -> None:
    episodes = bank.episodes
    console.print()
    console.print(_text(f"HiVe-Mem: {len(episodes)} memory episodes of {len({e.session_id for e in episodes})} sessions", "bold"))
    rows = [
        (e.index, e.date or "–", e.session_id, len(e.round_ids), len(e.images), len(e.anchor_sets.all), len(ends), e.summary)
        for e, ends in zip(episodes, bank.neighbours, strict=True)
    ]
    console.print(_table(("", "date", "session", "rounds", "images", "anchors", "edges", "summary"), rows))
    degrees = [len(ends) for ends in bank.neighbours]
    spread = f"{min(degrees)} to {max(degrees)} an episode, {fmean(degrees):.1f} on average; episodes without any: {degrees.count(0)}"
    console.print(_text(f"affinity graph: {len(bank.edges)} edges, {spread}"))
    console.print(_text(f"anchors: {len(bank.anchors)}, {_shared_anchors(episodes)}"))
    _print_losses(bank.counts, console)


def _shared_anchors(episodes: Sequence[MemoryEpisode]) -> str:
    """The anchors that most episodes have."""
    counted = Counter(anchor for episode in episodes for anchor in episode.anchor_sets.all)
    shared = sorted((-n, anchor) for anchor, n in counted.items() if n > 1)[:_N_ANCHORS]
    return "in most episodes: " + ", ".join(f"{anchor} ({-n})" for n, anchor in shared) if shared else "none of them in two episodes"


def _print_adamm(memory: AdaMMMemory, console: Console) -> None:
    n_rows = sum(table.n_rows for table in memory.tables)
    heading = f"AdaMM: {len(memory.tables)} tables with {n_rows} rows, from {memory.counts['observations']} observations"
    console.print()
    console.print(_text(f"{heading} in {len(memory.round_ids)} rounds", "bold"))
    store = TableStore(memory.folder / DATABASE, timeout_seconds=_QUERY_SECONDS)
    for table in memory.tables:
        console.print(_text(f"{table.name}: {table.n_rows} rows", "bold"))
        console.print(_text(table.description, "dim"))
        console.print(_columns(table, store))
        _print_indented(table_log(memory, table.schema), console)
        console.print()
    console.print(_text(events_line(memory)))
    console.print(_text(MEASURES, "dim"))
    events, episodes, topics = (memory.nodes[level] for level in ("event", "episode", "topic"))
    counted = f"hierarchy: {len(events)} events (rounds), {len(episodes)} AdaMM episodes, {len(topics)} topics"
    console.print(_text(f"{counted}; the last topic stands for the episode that is still open"))
    rows = [(topic.index, _dates(topic), len(topic.children), len(topic.rounds), topic.text) for topic in topics]
    console.print(_table(("", "dates", "episodes", "rounds", "topic"), rows))
    _print_losses(memory.counts, console)


def _columns(table: InducedTable, store: TableStore) -> Table:
    """The columns, with how many of their cells are filled, and in how many the value could not be used."""
    counted = ", ".join(f"count({quoted(column.name)})" for column in table.columns)
    (filled,) = store.query(f"SELECT {counted} FROM induced.{quoted(table.name)}", ())
    rows = [
        (column.name, column.type, column.unit, n_filled, column.n_unusable, " | ".join(column.samples))
        for column, n_filled in zip(table.columns, filled, strict=True)
    ]
    return _table(("column", "type", "unit", "filled", "unusable", "values"), rows)


def _dates(node: Node) -> str:
    first, last = node.dates
    return (first if first == last else f"{first} to {last}") or "–"


def _print_losses(counts: Mapping[str, int], console: Console) -> None:
    found = losses(counts)
    console.print(_text("dropped or missing:" if found else "dropped or missing: nothing"))
    _print_indented([f"{count} {words}" for count, words in found], console)


def _print_indented(lines: Sequence[str], console: Console) -> None:
    for line in lines:
        console.print(Padding(_text(line), (0, 0, 0, 2), expand=False))


def _table(names: Sequence[str], rows: Sequence[Sequence[str | int]]) -> Table:
    """A record a line: numbers to the right, names cut to a length, and the last column to what is left of the line."""
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for place, name in enumerate(names):
        is_number = bool(rows) and isinstance(rows[0][place], int)
        is_last = place == len(names) - 1  # the one that Rich may narrow; its cells are still not wrapped
        table.add_column(name, justify="right" if is_number else "left", no_wrap=not is_last, max_width=None if is_last else _MAX_NAME)
    for row in rows:
        table.add_row(*(_text(str(cell), cut=True) for cell in row))
    return table


def _text(text: str, style: str = "", *, cut: bool = False) -> Text:
    """Plain text in one line, if need be cut or else wrapped: nothing in it is markup, and nothing steers the terminal."""
    return Text(one_line(text), style, no_wrap=cut, overflow="ellipsis" if cut else None)
