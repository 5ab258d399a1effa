import json
from collections.abc import Mapping, Sequence
from datetime import date

import pytest

from data.typed_values import ColumnType
from memory.adamm.model import Observation, Schema
from memory.adamm.tables import Cell, FilledTable, by_round, materialise
from models.errors import ReplyError
from models.requests import Reply, Request, Usage
from models.tasks.adamm import TableInputs
from tests.memory.fakes import quiet


class Namer:
    """Gives every table the same name, and columns the types it was told, text if none."""

    def __init__(self, types: Mapping[str, ColumnType] | None = None, name: str = "Daily Log") -> None:
        self._types = types or {}
        self._name = name
        self.asked: list[TableInputs] = []

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        self.asked += [request.inputs for request in requests]
        return [Reply("", self._answer(request.inputs), Usage(1, 1, 0), 0.0) for request in requests]

    def _answer(self, inputs: TableInputs) -> str:
        columns = [{"name": name, "type": self._types.get(name, "text"), "description": f"the {name}"} for name, _ in inputs.columns]
        return json.dumps({"name": self._name, "description": "What was logged.", "columns": columns})


def filled(rounds: Sequence[Sequence[tuple[str, str]]], schemas: Sequence[Sequence[str]], model: Namer) -> tuple[FilledTable, ...]:
    """The tables of schemas over rounds of (attribute, value)."""
    observations = [
        Observation(order, position, attribute, value, value, "")
        for order, values in enumerate(rounds)
        for position, (attribute, value) in enumerate(values)
    ]
    numbered = [Schema(number, tuple(attributes)) for number, attributes in enumerate(schemas)]
    return materialise(numbered, by_round(observations, len(rounds)), generate=model.generate, progress=quiet)


def test_a_row_needs_two_attributes_and_half_of_them() -> None:
    rounds = [
        [(name, f"{name}{order}") for name in names] for order, names in enumerate(["abcde", "abc", "ab", "", "abz", "cde", "a", "azy"])
    ]
    five, two, three, four = filled(rounds, ["abcde", "ab", "abz", "abcd"], Namer())
    assert five.round_orders == (0, 1, 5)
    assert five.values == (("a0", "b0", "c0", "d0", "e0"), ("a1", "b1", "c1", None, None), (None, None, "c5", "d5", "e5"))
    assert two.round_orders == (0, 1, 2, 4)
    assert three.round_orders == (0, 1, 2, 4, 7)
    assert four.round_orders == (0, 1, 2, 4, 5)
    assert [table.table.n_rows for table in (five, two, three, four)] == [3, 4, 5, 5]


def test_the_first_of_a_duplicate_fills_the_cell() -> None:
    rounds = [[("pulse", "fast"), ("sleep", "7 hrs"), ("pulse", "61 bpm")], [("sleep", "6 hrs"), ("pulse", "62 bpm"), ("pulse", "63 bpm")]]
    (table,) = filled(rounds, [("pulse", "sleep")], Namer({"pulse": "number", "sleep": "duration"}))
    assert table.values == ((None, 25_200.0), (62.0, 21_600.0))
    assert table.cells == (
        Cell("daily_log", "pulse", 0, 0, usable=False, filled=True),
        Cell("daily_log", "pulse", 0, 2, usable=False, filled=False),
        Cell("daily_log", "pulse", 1, 1, usable=True, filled=True),
        Cell("daily_log", "pulse", 1, 2, usable=False, filled=False),
        Cell("daily_log", "sleep", 0, 1, usable=True, filled=True),
        Cell("daily_log", "sleep", 1, 0, usable=True, filled=True),
    )
    pulse, sleep = table.table.columns
    assert (pulse.type, pulse.unit, pulse.n_unusable, pulse.samples) == ("number", "bpm", 1, ("fast", "62 bpm"))
    assert (sleep.type, sleep.unit, sleep.n_unusable, sleep.description) == ("duration", "hrs", 0, "the sleep")


@pytest.mark.parametrize(
    ("kind", "texts", "unit", "cells"),
    [
        ("duration", ["5.5 hrs", "5 h 30 min", "330 min", "soon"], "hrs", (19_800.0, 19_800.0, 19_800.0, None)),
        ("number", ["$1,200.50", "$3", "4 EUR", "n/a"], "USD", (1_200.5, 3.0, None, None)),
        ("number", ["72 %", "0.5 %", "80", "seventy five percent or so"], "%", (72.0, 0.5, 80.0, None)),
        ("date", ["12/03/2026", "25/03/2026", "2026-04-01", "Monday"], "", (date(2026, 3, 12), date(2026, 3, 25), date(2026, 4, 1), None)),
        ("boolean", ["yes", "No", "on", "7"], "", (True, False, True, None)),
        ("text", ["72 %", "On", "12/03/2026", "x"], "", ("72 %", "On", "12/03/2026", "x")),
    ],
)
def test_values_of_mixed_types_are_null_and_counted(
    kind: ColumnType, texts: list[str], unit: str, cells: tuple[float | date | bool | str | None, ...]
) -> None:
    rounds = [[("reading", text), ("other", "x")] for text in texts]
    (table,) = filled(rounds, [("other", "reading")], Namer({"reading": kind}))
    assert tuple(row[1] for row in table.values) == cells
    column = table.table.columns[1]
    assert (column.type, column.unit, column.n_unusable) == (kind, unit, cells.count(None))


def test_a_type_that_fits_no_value_gives_way_to_text() -> None:
    (table,) = filled([[("mood", "calm"), ("x", "y")]] * 2, [("mood", "x")], Namer({"mood": "number"}))
    assert table.table.columns[0].type == "text" and table.values == (("calm", "y"), ("calm", "y"))


def test_samples_are_the_first_five_distinct_values_of_the_rows() -> None:
    rounds = [[("a", "lone")], *([("a", value), ("b", "x")] for value in ["v1", "v1", "v2", "v3", "v4", "v5", "v6"])]
    model = Namer()
    (table,) = filled(rounds, [("a", "b")], model)
    assert table.table.columns[0].samples == ("v1", "v2", "v3", "v4", "v5")
    assert model.asked == [TableInputs((("a", ("v1", "v2", "v3", "v4", "v5")), ("b", ("x",))))]


def test_tables_get_names_of_their_own() -> None:
    rounds = [[(name, "x") for name in "abcdef"]]
    assert [one.table.name for one in filled(rounds, ["ab", "cd", "ef"], Namer())] == ["daily_log", "daily_log_2", "daily_log_3"]
    assert [one.table.name for one in filled(rounds, ["ab", "cd"], Namer(name="!"))] == ["table_0", "table_1"]
    assert filled(rounds, ["ab"], Namer(name="x" * 80))[0].table.name == "x" * 60


def test_columns_do_not_take_auxiliary_names() -> None:
    attributes = ("captions", "round_order", "source", "time", "time_value")
    (table,) = filled([[(name, name) for name in attributes]], [attributes], Namer())
    names = [column.name for column in table.table.columns]
    assert names == ["captions_value", "round_order_value", "source_value", "time_value", "time_value_2"]
    assert [column.attribute for column in table.table.columns] == list(attributes)
    assert {cell.column for cell in table.cells} == set(names)


def test_unusable_metadata_is_told_together() -> None:
    class Silent(Namer):
        def _answer(self, inputs: TableInputs) -> str:
            return "{}"

    with pytest.raises(ReplyError, match=r"(?s)2 unusable replies.*table of 0: .*column a.*table of 1: "):
        filled([[("a", "x"), ("b", "y"), ("c", "z")]], ["ab", "bc"], Silent())
