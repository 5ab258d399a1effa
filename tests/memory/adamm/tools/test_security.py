"""What a hostile caller can reach: nothing but the tables' rows, whatever the arguments are."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory
from memory.adamm.tools.arguments import TOOLS
from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.toolbox import ToolBox
from tests.memory.adamm.tools.logs import open_tools, write_log, write_tables

SECRET = "the canary sings"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[AdaMMMemory]:
    """A memory beside files with a secret; nothing in the folder may change."""
    memory = write_log(tmp_path)
    for name in ("canary.txt", "canary.csv"):
        (tmp_path / name).write_text(f"{SECRET}\n1\n")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as database:
        database.execute(f"CREATE TABLE secrets AS SELECT '{SECRET}' AS secret")
    before = contents(tmp_path)
    yield memory
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*")}


def hostile_texts(folder: Path) -> tuple[list[str], list[str]]:
    """Statements in any clothing, and names, values and expressions that are none or odd."""
    file, table, other = folder / "canary.txt", folder / "canary.csv", folder / "other.duckdb"
    queries = [
        *(f"SELECT content FROM read_text('{file}')", f"SELECT * FROM '{table}'", f"read_csv('{table}')", f"read_text('{file}')"),
        *(f"ATTACH '{other}'", f"COPY training_log TO '{folder / 'out.csv'}'", "PRAGMA database_list", "INSTALL httpfs", "LOAD httpfs"),
        *("SET enable_external_access = true", "DROP TABLE induced.training_log", "DELETE FROM induced.training_log", "CHECKPOINT"),
        *("UPDATE induced.training_log SET heart_rate = 0", "CREATE TABLE x (y INTEGER)", "SELECT * FROM main.cells", "SELECT 1"),
        *(f"EXPORT DATABASE '{folder / 'out'}'", "CALL duckdb_settings()", "SELECT * FROM duckdb_secrets()", "VACUUM", "getenv('HOME')"),
    ]
    ways = [
        "{}",
        "heart_rate; {}",
        "heart_rate'; {} --",
        'heart_rate"; {} --',
        "({})",
        "1); {}; --",
        "heart_rate UNION {}",
        "x' OR ({}) --",
    ]
    names = [
        *("main.cells", '"induced"."training_log"', "induced.training_log", "information_schema.tables", "duckdb_tables", "sqlite_master"),
        *(
            "activity__folded",
            "rowid",
            "cells",
            "observations",
            f"'{table}'",
            str(table),
            f'"{table}"',
            "../adamm.duckdb",
            "training_log.*",
        ),
        *(
            "*",
            "",
            " ",
            '"',
            '""',
            '"""',
            "'",
            "\\",
            ";",
            "--",
            "/*",
            "*/",
            "$1",
            "?",
            "?1",
            ":x",
            "{}",
            "%",
            "%s",
            "{0}",
            "\x00",
            "\n",
            "\r\n",
        ),
        *(
            "\ud800",
            "a\udfffb",
            "ﬁ",
            "İ",
            "ß",
            "\u202eheart_rate",
            "heart_rate\u200b",
            "ｈｅａｒｔ＿ｒａｔｅ",
            "💥" * 50,
            "é" * 200,
            "NULL",
            "true",
        ),
        *(
            "NaN",
            "Infinity",
            "-inf",
            "1e999",
            "9" * 400,
            "0x10",
            "1_000",
            "5 h 30 min",
            "7 pm",
            "2026-03-12",
            "-0",
            "1e-400",
            "½",
            "٣",
            "１２",
        ),
        *("(" * 400, "-" * 400, "(" * 150 + "1" + ")" * 150, "1" + "+1" * 240, "1" + "/1" * 240, "heart_rate" + "*heart_rate" * 40),
        *("1/" * 100 + "0", "year(" * 80 + "due" + ")" * 80, "heart_rate/(climb-climb)", "sleep*sleep/0", "due-due", "bedtime-bedtime"),
        *(
            "year(due)",
            "heart_rate + 5 kg",
            "distance - 3 miles",
            "sleep / 2 h",
            "1e14*1e14*1e14*1e14",
            "-heart_rate",
            "5",
            "captions",
            "time",
        ),
    ]
    return [way.format(query) for query in queries for way in ways], names


def nested(depth: int) -> Any:
    deep: Any = "x"
    for level in range(depth):
        deep = [deep] if level % 2 else {"column": deep}
    return deep


class Caller:
    """Draws calls: of the right form with hostile values in any place, of wrong forms, and as broken JSON."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._hostile = hostile_texts(folder)
        numbers = [10**40, -(2**127), 2**128, 10**4000, 1e308, float("nan"), float("inf"), -0.0]
        self._things = [*numbers, None, True, [], {}, "", (), *map(nested, [1, 5, 300]), self._hostile[0][0]]
        self._columns = [
            "heart_rate",
            "distance",
            "sleep",
            "bedtime",
            "due",
            "done",
            "activity",
            "time",
            "round_order",
            "source",
            "captions",
        ]

    def call(self) -> tuple[Any, Any]:
        tool = self._random.choice([*TOOLS, "Compute", "Filter", "Rank", "Lookup", "Drop"] if self._one_in(10) else [*TOOLS][:4])
        if self._one_in(50):
            tool = self._text()
        arguments: Any = {
            "table": self._pick(["training_log"] * 8 + ["Empty", "TRAINING_LOG"]),
            "key_values": self._keys(),
            "column_filters": self._filters(1),
            "target_column_expression": self._expression(),
            "operator": self._pick(
                ["count", "count_distinct", "sum", "average", "minimum", "maximum", "median", "standard_deviation", "first", "change"]
            ),
            "optional_column_filters": self._filters(0),
            "group_by": self._expression() if self._one_in(3) else None,
            "order": self._pick(["ascending", "descending"]),
            "result_budget": self._random.choice(
                [None, 1, 10, 3, 3, 3, *([10**40, -1, 2.5, True, "3", float("nan"), [1]] if self._one_in(20) else [])]
            ),
            "query_content": self._text(),
            "retrieval_scope": self._pick(["event", "topic"]),
        }
        known = TOOLS[tool].model_fields if tool in TOOLS else arguments
        arguments = {name: value for name, value in arguments.items() if name in known}
        if self._one_in(20):
            arguments[self._text()] = self._anything()
        if self._one_in(20):
            arguments[self._random.choice([*arguments])] = self._anything()
        if self._one_in(3):
            arguments = json.dumps(arguments, ensure_ascii=self._one_in(2))
            if self._one_in(10):
                place = self._random.randrange(len(arguments))
                arguments = arguments[:place] + self._random.choice([*'{}[]",:\\\x00', "NaN", "1e999", "9" * 5000]) + arguments[place:]
        elif self._one_in(40):
            arguments = self._anything()
        return tool, arguments

    def _one_in(self, n: int) -> bool:
        return self._random.randrange(n) == 0

    def _text(self) -> str:
        text = self._random.choice(self._random.choice(self._hostile))
        return text + self._random.choice(self._random.choice(self._hostile)) if self._one_in(8) else text

    def _pick(self, usual: list[str]) -> Any:
        return self._anything() if self._one_in(200) else self._text() if self._one_in(15) else self._random.choice(usual)

    def _expression(self) -> Any:
        sides = [self._pick([*self._columns, "2", "3 km", "30 min", "(climb)", "-distance", "month(due)"]) for _ in range(2)]
        return sides[0] if self._one_in(2) or not all(isinstance(side, str) for side in sides) else self._random.choice("+-*/").join(sides)

    def _filters(self, least: int) -> list[Any]:
        return [
            {
                "column": self._expression(),
                "operator": self._pick(["=", "!=", "<", "between", "in", "contains", "is_null", "≥"]),
                "value": self._value(),
            }
            for _ in range(self._random.randint(least, 2))
        ]

    def _keys(self) -> Any:
        pairs = [(self._pick(self._columns), self._value()) for _ in range(self._random.randint(1, 3))]
        if all(isinstance(column, str) for column, _ in pairs) and self._one_in(2):
            return dict(pairs)
        return [{"column": column, "value": value} for column, value in pairs]

    def _value(self) -> Any:
        usual = [61, 72.5, "5 h 30 min", "2026-03-10", True, "run", "7 pm", "5 km", None, [1, 2], ["2026-01-01", "2026-12-31"]]
        return self._anything() if self._one_in(40) else self._text() if self._one_in(4) else self._random.choice(usual)

    def _anything(self) -> Any:
        return self._random.choice(self._things)


def test_ten_thousand_hostile_calls_change_and_reveal_nothing(guarded: AdaMMMemory) -> None:
    tools = open_tools(guarded)
    caller = Caller(guarded.folder, seed=0)
    outcomes: Counter[str] = Counter()
    for _ in range(10_000):
        tool, arguments = caller.call()
        try:
            result = tools.call(tool, arguments, allowance=10)
        except ToolError as error:
            outcomes[error.code] += 1
            assert error.allowed and error.where
            shown = str(error)
        else:
            outcomes["result"] += 1
            assert len(result.units) <= 10
            shown = json.dumps(result.returned, allow_nan=False, ensure_ascii=False) + "".join(unit.text for unit in result.units)
        shown.encode()
        assert SECRET not in shown
    usual = ["result", "arguments", "table", "column", "expression", "operator", "value", "unknown_tool"]
    assert all(outcomes[one] > 50 for one in usual), outcomes


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT content FROM read_text('{folder}/canary.txt')",
        "SELECT * FROM read_csv('{folder}/canary.csv')",
        "SELECT * FROM '{folder}/canary.csv'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_blob('{folder}/canary.txt')",
        "ATTACH '{folder}/other.duckdb'",
        "ATTACH '{folder}/new.duckdb'",
        "COPY induced.training_log TO '{folder}/out.csv'",
        "COPY (SELECT 1) TO '{folder}/out.parquet'",
        "EXPORT DATABASE '{folder}/out'",
        "IMPORT DATABASE '{folder}/out'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE SECRET (TYPE s3)",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET memory_limit = '10GB'",
        "SET threads = 8",
        "SET temp_directory = '{folder}/temp'",
        "SET allowed_directories = ['{folder}']",
        "PRAGMA memory_limit = '10GB'",
        "RESET enable_external_access",
        "DROP TABLE induced.training_log",
        "DELETE FROM induced.training_log",
        "INSERT INTO main.counts VALUES ('x', 1)",
        "CREATE TABLE induced.new (x INTEGER)",
        "ALTER TABLE induced.training_log DROP COLUMN done",
        "UPDATE induced.training_log SET heart_rate = 0",
    ],
)
def test_not_even_sql_reaches_files_or_settings(guarded: AdaMMMemory, sql: str) -> None:
    store = TableStore(guarded.folder / DATABASE, timeout_seconds=10)
    assert store.query("SELECT count(*) FROM induced.training_log", []) == [(5,)]
    with pytest.raises(duckdb.Error):
        store.query(sql.format(folder=guarded.folder), [])
    assert store.query("SELECT count(*) FROM induced.training_log", []) == [(5,)]


def test_nested_divisions_cost_no_more_than_their_length(guarded: AdaMMMemory) -> None:
    divisions = "1/(" * 45 + "distance" + ")" * 45
    result = open_tools(guarded).call(
        "Rank", {"table": "training_log", "target_column_expression": divisions, "order": "ascending"}, allowance=10
    )
    assert [row["round_order"] for row in result.returned["ranked_rows"]] == [8, 4, 0]


def test_a_query_that_needs_too_much_memory_is_an_error_of_the_call(tmp_path: Path) -> None:
    class SmallStore:
        """The file on a connection that may use less memory than the table takes."""

        def __init__(self, path: Path) -> None:
            self._connection = duckdb.connect(
                str(path), read_only=True, config={"memory_limit": "2MB", "temp_directory": "", "threads": "1"}
            )

        def query(self, sql: str, parameters: Any) -> Any:
            return self._connection.execute(sql, list(parameters)).fetchall()

    columns: Any = {"note": ("text", ""), "n": ("number", "")}
    rows = [(f"{number} " * 1000, float(number)) for number in range(1000)]
    memory = write_tables(tmp_path, {"t": (columns, rows)}, round_orders=range(len(rows)), dates=["2026-01-01"] * len(rows))
    tools = ToolBox(memory, tables=SmallStore(tmp_path / DATABASE), retrieval=None)
    with pytest.raises(ToolError) as caught:
        tools.call("Compute", {"table": "t", "target_column_expression": "note", "operator": "count_distinct"}, allowance=1)
    assert caught.value.code == "timeout" and "needs more memory" in caught.value.problem
