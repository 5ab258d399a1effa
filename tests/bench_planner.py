"""Speed of planning over a large opened memory, without the time of models and encoders: the context, and a step with each tool."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory, Column, Table
from memory.adamm.tools.retrieval import RetrievalTools
from memory.adamm.tools.toolbox import ToolBox
from memory.duckdb_file import create
from models.requests import Reply, Request, Usage, canonical_json
from models.tasks.planning import AbstractStep
from planners.context import ContextIndex
from planners.execution import Execution, Subject, run_step, run_together
from tests.bench_retrieval import D_TEXT, D_VISUAL, RandomEncoder, large_memory

N_TABLES, N_EVENTS = 1_000, 100_000
_N_ROWS = N_EVENTS // N_TABLES
_RUNS = 20
_WORDS = [
    "pace",
    "weight",
    "price",
    "sleep",
    "mood",
    "rain",
    "swim",
    "bread",
    "train",
    "paint",
    "garden",
    "letter",
    "violin",
    "harbour",
    "lamp",
]
_CALLS: dict[str, dict[str, Any]] = {
    "Lookup": {"table": "log_7", "key_values": [{"column": "activity", "value": "Activity 3"}]},
    "Filter": {"table": "log_7", "column_filters": [{"column": "pace", "operator": ">", "value": 50}]},
    "Compute": {"table": "log_7", "target_column_expression": "pace", "operator": "average"},
    "Rank": {"table": "log_7", "target_column_expression": "pace", "order": "descending"},
    "SemanticMatch": {"query_content": "q", "retrieval_scope": "event"},
    "EventLocate": {"query_content": "q"},
}


def planning_seconds(folder: Path) -> dict[str, float]:
    """Median seconds of ranking the planning context of a question, and of a whole step with each tool, by name."""
    memory = _with_tables(large_memory(N_EVENTS), folder)
    encoder = RandomEncoder(D_TEXT)
    store = TableStore(folder / DATABASE, timeout_seconds=10)
    retrieval = RetrievalTools(memory, text_encoder=encoder, image_encoder=RandomEncoder(D_VISUAL))
    tools = ToolBox(memory, tables=store, retrieval=retrieval)
    index = ContextIndex(memory)
    question = "How did the pace of the train and the price of bread change after the rain?"
    (query,) = encoder.encode([question])
    rank = lambda: index.rank(question, query, k_tables=5, k_episodes=5)  # noqa: E731
    context = rank().shown

    def step(tool: str) -> Callable[[], object]:
        execution = Execution(plan=(AbstractStep("read the log", tool),))
        reply = Reply("", canonical_json(_CALLS[tool]), Usage(0, 0, 0), 0.0)

        def answer(requests: list[Request]) -> list[Reply]:
            return [reply]

        def run() -> None:
            started = replace(execution, steps=[], replies=[])
            (done,) = run_together([run_step(Subject(question, (), context, tools), started, 0, allowance=10)], answer)  # type: ignore[arg-type]  # a list is what it is given
            assert done.result is not None and done.result.units, done.failures

        return run

    found = {"the planning context": _median(rank)} | {f"a step of {tool}": _median(step(tool)) for tool in _CALLS}
    store.close()
    return found


def _with_tables(memory: AdaMMMemory, folder: Path) -> AdaMMMemory:
    """The memory with its tables, each of a hundred rows in the database."""
    columns = (
        Column("pace", "pace", "number", "km/h", "The pace.", ("12 km/h",), 0),
        Column("activity", "activity", "text", "", "What was done.", ("Activity 3",), 0),
    )
    rng = np.random.default_rng(0)
    with create(folder / DATABASE, n_rows=_N_ROWS) as database:
        database.execute("CREATE SCHEMA induced")
        for number in range(N_TABLES):
            database.execute(
                f"""CREATE TABLE induced.log_{number} AS SELECT i::INTEGER AS round_order, DATE '2031-01-01' + i::INTEGER AS time,
                'S' || i AS source, NULL::VARCHAR AS captions, (i * 37 % 100)::DOUBLE AS pace, 'Activity ' || i % 7 AS activity,
                'activity ' || i % 7 AS activity__folded FROM range({_N_ROWS}) AS r(i) ORDER BY i"""
            )
    tables = tuple(
        Table(f"log_{number}", f"A log of {' '.join(rng.choice(_WORDS, 4))}.", columns, _N_ROWS, number) for number in range(N_TABLES)
    )
    return replace(memory, tables=tables, table_vectors=RandomEncoder(D_TEXT).encode([""] * N_TABLES))


def _median(run: Callable[[], object]) -> float:
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)
