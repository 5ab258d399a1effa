"""Memories with given tables, written as a build writes them."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import numpy as np

from data.history import Round
from data.typed_values import ColumnType
from memory.adamm.content import AdaMMContent, write_content
from memory.adamm.database import DATABASE, TableStore
from memory.adamm.extraction import RoundContent
from memory.adamm.model import LEVELS, AdaMMMemory, Column, Table
from memory.adamm.tables import FilledTable, Value
from memory.adamm.tools.toolbox import ToolBox

Row = tuple[Value, ...]
Columns = Mapping[str, tuple[ColumnType, str]]
"""Type and unit by column."""

LOG: Columns = {
    "heart_rate": ("number", "bpm"),
    "distance": ("number", "km"),
    "climb": ("number", "m"),
    "sleep": ("duration", "h"),
    "bedtime": ("time", ""),
    "due": ("date", ""),
    "done": ("boolean", ""),
    "activity": ("text", ""),
    'odd "name" (x)': ("number", ""),
}
LOG_ROWS: Sequence[Row] = (
    (61.0, 5.5, 120.0, 27000.0, 1380.0, date(2026, 3, 12), True, "Morning Run", 1.0),
    (72.0, 0.0, 0.0, 19800.0, 30.0, date(2026, 3, 15), False, "Straße Walk", 2.0),
    (None, 12.0, None, None, 1410.0, None, None, "RUN", 3.0),
    (58.5, None, 40.0, 28800.0, None, date(2025, 12, 31), True, None, None),
    (72.0, 21.1, 305.0, 25200.0, 1395.0, date(2026, 3, 15), True, "bike_ride 100%", 5.0),
)
LOG_DATES = ("2026-03-10", "2026-03-10", "2026-03-11", "", "2026-04-01")
"""The sessions' dates of the rows; row i is round 2 i, whose picture shows what is said of it."""


def write_log(folder: Path) -> AdaMMMemory:
    """The log of training that most tests read, and a table without rows."""
    return write_tables(
        folder,
        {"training_log": (LOG, LOG_ROWS), "Empty": ({"weight": ("number", "kg")}, ())},
        round_orders=range(0, 10, 2),
        dates=[one for one in LOG_DATES for _ in range(2)],
    )


def write_tables(
    folder: Path, tables: Mapping[str, tuple[Columns, Sequence[Row]]], *, round_orders: Sequence[int], dates: Sequence[str]
) -> AdaMMMemory:
    """Write a memory's database; a table's rows are of the first of ``round_orders``, and ``dates`` are those of all rounds."""
    rounds = tuple(
        RoundContent(
            order, f"S{order // 2}", day, Round(f"S{order // 2}:R{order % 2}", "", ""), (), ((f"IMG_{order}", f"Photo No {order}"),)
        )
        for order, day in enumerate(dates)
    )
    filled = tuple(
        FilledTable(
            Table(name, "What was logged.", tuple(Column(c, c, *kind, "", (), 0) for c, kind in columns.items()), len(rows), number),
            tuple(round_orders[: len(rows)]),
            tuple(rows),
            (),
        )
        for number, (name, (columns, rows)) in enumerate(tables.items())
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_content(folder / DATABASE, AdaMMContent(rounds, (), filled, (), dict.fromkeys(LEVELS, ()), {}))
    return AdaMMMemory(
        history_id="health",
        folder=folder,
        text_encoder_id="",
        image_encoder_id="",
        round_ids=tuple(one.round.id for one in rounds),
        round_sessions=tuple(one.session_id for one in rounds),
        tables=tuple(one.table for one in filled),
        table_vectors=np.zeros((len(filled), 1), np.float32),
        nodes={},
        vectors={},
        schema_events=(),
        counts={},
    )


def open_tools(memory: AdaMMMemory) -> ToolBox:
    """The analytic tools over a memory."""
    return ToolBox(memory, tables=TableStore(memory.folder / DATABASE, timeout_seconds=10), retrieval=None)
