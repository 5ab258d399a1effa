"""Materialisation: induced schemas become typed tables whose every cell can be traced (AdaMM, §3.3.3)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from data.typed_values import type_column
from memory.adamm.model import AUXILIARY_COLUMNS, FOLDED, Column, Observation, Schema, Table
from memory.adamm.names import MAX_NAME, snake_case, unique
from memory.asking import Call, Generate, Progress, ask
from models.tasks.adamm import TableInputs, TableReply, parse_table, table_request

_N_SAMPLES = 5

Value = float | date | bool | str | None
RoundObservations = Mapping[str, Sequence[Observation]]
"""A round's observations by attribute, in the order of their positions."""


@dataclass(frozen=True)
class Cell:
    """Where a cell comes from: an observation of its attribute in its row's round.

    ``filled``: the observation is the first of its attribute in the round, so its value is the cell's. ``usable``: that value is of
    the column's type and unit; False for those that do not fill the cell.
    """

    table: str
    column: str
    round_order: int
    position: int
    usable: bool
    filled: bool


@dataclass(frozen=True)
class FilledTable:
    """A table with its rows, by round order, and where their cells come from: ``values`` are the data columns of each row."""

    table: Table
    round_orders: tuple[int, ...]
    values: tuple[tuple[Value, ...], ...]
    cells: tuple[Cell, ...]


def by_round(observations: Sequence[Observation], n_rounds: int) -> list[RoundObservations]:
    """The observations of each round, by attribute."""
    rounds: list[defaultdict[str, list[Observation]]] = [defaultdict(list) for _ in range(n_rounds)]
    for observation in observations:
        rounds[observation.round_order][observation.attribute].append(observation)
    return [dict(found) for found in rounds]


def materialise(
    schemas: Sequence[Schema], rounds: Sequence[RoundObservations], *, generate: Generate, progress: Progress
) -> tuple[FilledTable, ...]:
    """Fill a table for every schema; the model names and describes them and chooses the columns' types.

    A row is a round that has at least two of the schema's attributes and at least half of them.

    Raises:
        models.errors.ReplyError: replies that are not what was asked for, all of them at once.
        models.errors.BackendError: a call failed.
    """
    associated = [_rows(schema, rounds) for schema in schemas]
    calls = []
    for schema, rows in zip(schemas, associated, strict=True):
        inputs = TableInputs(tuple((attribute, _samples(attribute, rows)) for attribute in schema.attributes))
        calls.append(Call(schema.number, table_request(inputs), partial(parse_table, attributes=schema.attributes)))
    replies = ask(calls, generate=generate, stage="tables", progress=progress)["table"]
    names = unique(snake_case(replies[schema.number].name)[:MAX_NAME] or f"table_{schema.number}" for schema in schemas)
    return tuple(_fill(schema, name, replies[schema.number], rows) for schema, name, rows in zip(schemas, names, associated, strict=True))


_Rows = Sequence[tuple[int, RoundObservations]]


def _rows(schema: Schema, rounds: Sequence[RoundObservations]) -> _Rows:
    n = len(schema.attributes)
    found = []
    for order, observations in enumerate(rounds):
        n_present = sum(attribute in observations for attribute in schema.attributes)
        if n_present >= 2 and 2 * n_present >= n:
            found.append((order, observations))
    return found


def _samples(attribute: str, rows: _Rows) -> tuple[str, ...]:
    """The first distinct values of an attribute's cells."""
    values = dict.fromkeys(observations[attribute][0].value for _, observations in rows if attribute in observations)
    return tuple(values)[:_N_SAMPLES]


def _column_names(attributes: Sequence[str]) -> list[str]:
    """An attribute that has the name of an auxiliary column, or of a companion, gets another."""
    return unique(
        f"{attribute}_value" if attribute in AUXILIARY_COLUMNS or attribute.endswith(FOLDED) else attribute for attribute in attributes
    )


def _fill(schema: Schema, name: str, reply: TableReply, rows: _Rows) -> FilledTable:
    columns, values, cells = [], [], []
    for place, (attribute, column) in enumerate(zip(schema.attributes, _column_names(schema.attributes), strict=True)):
        found = [(order, observations[attribute]) for order, observations in rows if attribute in observations]
        texts = [observations[0].value for _, observations in found]
        typed = type_column(texts, reply.types[place])
        if all(value is None for value in typed.cells):
            typed = type_column(texts, "text")  # a type that fits no value would hide them all
        by_order: dict[int, Value] = {order: value for (order, _), value in zip(found, typed.cells, strict=True)}
        n_unusable = sum(value is None for value in typed.cells)
        columns.append(Column(column, attribute, typed.type, typed.unit, reply.descriptions[place], _samples(attribute, rows), n_unusable))
        values.append([by_order.get(order) for order, _ in rows])
        cells += [
            Cell(name, column, order, observation.position, nth == 0 and by_order[order] is not None, nth == 0)
            for order, observations in found
            for nth, observation in enumerate(observations)
        ]
    table = Table(name, reply.description, tuple(columns), len(rows), schema.number)
    return FilledTable(table, tuple(order for order, _ in rows), tuple(zip(*values, strict=True)), tuple(cells))
