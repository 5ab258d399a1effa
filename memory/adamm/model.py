"""The data model of AdaMM's memory, as its construction makes it and everything downstream sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from data.typed_values import ColumnType
from models.tasks.planning import ContextColumn, ContextTable

Level = Literal["event", "episode", "topic"]
LEVELS: tuple[Level, ...] = ("event", "episode", "topic")


@dataclass(frozen=True)
class Observation:
    """One grounded attribute-value pair of a round (Eq. 1).

    ``round_order`` counts the history's rounds from 0, ``position`` the round's observations from 0. ``attribute`` is
    snake_case, ``value`` as in the source. ``quote`` is the supporting dialogue span, ``image_id`` the supporting image; one is "".
    """

    round_order: int
    position: int
    attribute: str
    value: str
    quote: str
    image_id: str


@dataclass(frozen=True)
class Schema:
    """An induced schema A: ``number`` in order of creation; attributes as discovered (sorted), later ones appended."""

    number: int
    attributes: tuple[str, ...]


EventKind = Literal["discovered", "extended", "merged", "rejected", "capped"]


@dataclass(frozen=True)
class SchemaEvent:
    """Why a schema exists or does not: what happened after which round, to which attributes.

    ``schema`` is the number of the schema that was discovered, extended, dropped as merged, or contained in the rejected set; None
    where the round's search was capped. ``attributes`` are the schema's after the event, or the rejected set. ``measure`` and ``value``:
    ``all_conf`` of a discovery; ``ext_conf`` of an extension or rejection; ``into`` and the number of the schema merged into;
    ``tested`` and how many sets a capped round had tested.
    """

    round_order: int
    kind: EventKind
    schema: int | None
    attributes: tuple[str, ...]
    measure: str
    value: float


@dataclass(frozen=True)
class Column:
    """A data column: its values are of ``type`` and, for numbers, in ``unit`` ("" for none).

    Durations are in seconds and times of day in minutes; ``samples`` are up to five source texts; ``n_unusable`` counts the cells
    whose text is not of the column's type or unit, and which are NULL.
    """

    name: str
    attribute: str
    type: ColumnType
    unit: str
    description: str
    samples: tuple[str, ...]
    n_unusable: int


AUXILIARY_COLUMNS = ("round_order", "time", "source", "captions")
"""The columns that every table has besides its data columns: INTEGER, DATE, VARCHAR (round id), VARCHAR."""
FOLDED = "__folded"
"""A text column's casefolded companion is named by the column and this ending."""


@dataclass(frozen=True)
class Table:
    """A materialised schema T_A; names are unique after casefolding. ``schema`` is the schema's number."""

    name: str
    description: str
    columns: tuple[Column, ...]
    n_rows: int
    schema: int

    @property
    def context(self) -> ContextTable:
        """The table as a planner sees it."""
        columns = tuple(ContextColumn(one.name, one.type, one.unit, one.description, one.samples) for one in self.columns)
        return ContextTable(self.name, self.description, self.n_rows, columns)

    @property
    def metadata(self) -> str:
        """μ_T of Eq. 9: name, description, columns and sampled values, as text."""
        return self.context.text


@dataclass(frozen=True)
class Node:
    """An event, AdaMM episode or topic. ``index`` is its place in its level, in order of creation.

    ``parent`` is an index in the level above (None for topics, and for the last episode, which stays open); ``children`` are
    indices in the level below. The open episode stands for itself in the last topic, which has its description and vectors and
    it as the only child. ``text`` is an event's content, else the description. ``rounds`` are the round orders it covers,
    ascending; ``dates`` are its first and last session date, "" where the benchmark gives none.
    """

    level: Level
    index: int
    parent: int | None
    children: tuple[int, ...]
    text: str
    rounds: tuple[int, ...]
    dates: tuple[str, str]
    image_ids: tuple[str, ...]


@dataclass(frozen=True)
class NodeVectors:
    """The vectors of one level of n nodes, read-only.

    ``text``: (n, d) float32, unit norm. ``visual``: (n, v) float32, unit norm, zero where ``has_visual`` (n,) bool is False; v is 0
    where no image encoder ran.
    """

    text: NDArray[np.float32]
    visual: NDArray[np.float32]
    has_visual: NDArray[np.bool_]


@dataclass(frozen=True)
class AdaMMMemory:
    """AdaMM's memory of one history, as opened; the rows of the tables stay in the database (`memory.adamm.database`).

    ``round_ids`` and ``round_sessions`` give the id and the session id of each round order. ``nodes`` and ``vectors`` are by level.
    ``table_vectors``: (tables, d) float32, unit norm, of `Table.metadata`. ``counts``: what was found, dropped, truncated, by name.
    """

    history_id: str
    folder: Path
    text_encoder_id: str
    image_encoder_id: str
    round_ids: tuple[str, ...]
    round_sessions: tuple[str, ...]
    tables: tuple[Table, ...]
    table_vectors: NDArray[np.float32]
    nodes: Mapping[Level, tuple[Node, ...]]
    vectors: Mapping[Level, NodeVectors]
    schema_events: tuple[SchemaEvent, ...]
    counts: Mapping[str, int]
