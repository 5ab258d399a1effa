"""AdaMM's memory of the sample, built by the embedded engine, against the truth that the generator knows."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from data.images import Picture
from data.loaders.mem_gallery import load_mem_gallery
from data.sample.dialogue import Exchange, write_dialogue
from data.sample.draws import Draws
from data.sample.generate import choose_questions, generate_sample, make_source
from data.sample.picture_questions import pixel_aggregations, text_aggregations
from data.sample.pictures import Content
from data.sample.questions import Source
from data.sample.vocabulary import DashboardKind, load_vocabulary
from data.sample.world import Log, Placed, make_world
from data.values import format_number
from memory.adamm.build import build_adamm
from memory.adamm.database import DATABASE, TableStore
from memory.adamm.model import AdaMMMemory, Table
from memory.adamm.names import snake_case
from memory.adamm.tools.toolbox import ToolBox
from memory.duckdb_file import open_read_only
from models.cache.calls import CallCache
from models.door import Door
from models.embedded.engine import EmbeddedEngine
from models.embedded.extract import extract
from models.embedded.ocr import TextReader
from models.store import ContentStore
from models.tasks.adamm import ExtractedValue, ExtractInputs, parse_extract
from tests.memory.adamm.fakes import SETTINGS
from tests.memory.fakes import HashEncoder, WordCounter, quiet

N_HISTORIES, N_READ = 10, 2
"""Histories of the sample, and how many of them, pictures included, are built into memory."""
N_QUESTIONS = 150
DURATIONS = {"s", "min", "h"}


@dataclass(frozen=True)
class Told:
    """The truth of one history and what was said in it."""

    source: Source
    exchanges: dict[str, Exchange]

    def boards(self) -> list[Content]:
        return [content for content in self.source.contents if isinstance(content.share.kind, DashboardKind)]


class NoLook:
    """Stands for an image encoder that is never asked: no question is answered here."""

    id = "none"

    def encode_images(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        raise AssertionError(f"{len(pictures)} pictures were to be compared")


@pytest.fixture(scope="module")
def told() -> list[Told]:
    """The histories of the default sample, drawn as the generator draws them."""
    vocabulary = load_vocabulary()
    root = np.random.SeedSequence(0)
    personas = np.random.default_rng(root.spawn(1)[0]).permutation(np.array(vocabulary.pools["personas"]))
    names: set[str] = set()
    found = []
    for name, seed in zip(personas, root.spawn(N_HISTORIES), strict=False):
        draws = Draws(np.random.default_rng(seed), pools=vocabulary.pools, names=names)
        world = make_world(draws, vocabulary=vocabulary, name=str(name))
        exchanges = write_dialogue(world, draws=draws, vocabulary=vocabulary)
        found.append(Told(make_source(world, exchanges, draws, vocabulary), exchanges))
        choose_questions(found[-1].source, N_QUESTIONS)  # draws names, which later histories then do not have
    return found


@pytest.fixture(scope="module")
def memories(told: list[Told], tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Told, AdaMMMemory]]:
    folder = tmp_path_factory.mktemp("truth")
    generate_sample(folder / "sample", seed=0, n_histories=N_READ, n_questions=N_QUESTIONS)
    store = ContentStore(None)
    engine = EmbeddedEngine(store, image_encoder=NoLook(), counter=WordCounter())
    door = Door(engine, cache=CallCache(folder / "calls.sqlite", mode="read_write"), ledger=None)
    built = {}
    for history in load_mem_gallery(folder / "sample").histories:
        built[history.id] = build_adamm(
            history,
            root=folder / "banks",
            generate=door.generate,
            text_encoder=HashEncoder(),
            image_encoder=None,
            counter=WordCounter(),
            settings=SETTINGS,
            model_id=engine.model_id,
            progress=quiet,
            reader=TextReader(store),
        )
    pairs = [(one, built[f"{one.source.name}_{one.source.world.persona.surname}"]) for one in told[:N_READ]]
    for one, memory in pairs:
        assert memory.round_ids == tuple(one.exchanges)
    return pairs


def _extracted(exchange: Exchange) -> tuple[str, tuple[ExtractedValue, ...]]:
    dialogue = f"user: {exchange.user}\nassistant: {exchange.assistant}"
    return dialogue, parse_extract(extract(ExtractInputs("2031-01-01", dialogue, (), ()), reader=TextReader(ContentStore(None))))


def test_every_written_reading_is_extracted_and_nothing_else_in_its_round(told: list[Told]) -> None:
    for one in told:
        for placed in one.source.world.rounds:
            if isinstance(placed.what, Log):
                dialogue, found = _extracted(one.exchanges[placed.round_id])
                assert [(snake_case(value.attribute), value.value) for value in found] == [
                    (snake_case(label), value) for label, value in placed.what.readings
                ], dialogue
                assert all(value.value in value.quote and value.quote in dialogue and not value.image_id for value in found)


def test_other_rounds_give_short_names_of_values_that_were_said(told: list[Told]) -> None:
    n_found = 0
    for one in told:
        for placed in one.source.world.rounds:
            if not isinstance(placed.what, Log):
                dialogue, found = _extracted(one.exchanges[placed.round_id])
                for value in found:
                    assert 1 <= len(value.attribute.split()) <= 4
                    assert value.value in value.quote
                    assert value.quote in dialogue
                    assert re.search(r"\d", value.value)
                n_found += len(found)
    assert n_found >= 50


def test_pictures_give_all_their_rows_and_nothing_else(memories: list[tuple[Told, AdaMMMemory]]) -> None:
    for one, memory in memories:
        with open_read_only(memory.folder / DATABASE) as database:
            rows = database.execute("SELECT image_id, attribute, value, quote FROM observations WHERE image_id <> ''").fetchall()
        truth = {(content.image_id, snake_case(label), value, "") for content in one.source.contents for label, value in content.rows}
        assert set(rows) == truth
        assert len(rows) == len(truth)


def _table_of(memory: AdaMMMemory, labels: set[str]) -> Table:
    (table,) = (table for table in memory.tables if {column.attribute for column in table.columns} == labels)
    return table


def test_the_dashboards_are_the_tables(memories: list[tuple[Told, AdaMMMemory]]) -> None:
    for one, memory in memories:
        assert len(memory.tables) == 3
        order = {round_id: place for place, round_id in enumerate(memory.round_ids)}
        store = TableStore(memory.folder / DATABASE, timeout_seconds=10)
        for board in one.boards():
            table = _table_of(memory, {snake_case(label) for label, _ in board.rows})
            readings = {placed.round_id: dict(placed.what.readings) for placed in _logs(one, board)}
            readings[board.placed.round_id] = dict(board.rows)
            assert len(readings) == table.n_rows == 5
            units = {snake_case(label): value.partition(" ")[2] for label, value in board.rows}
            expected = {name: ("duration" if unit in DURATIONS else "number", unit, 0) for name, unit in units.items()}
            assert {column.name: (column.type, column.unit, column.n_unusable) for column in table.columns} == expected
            for label, _ in board.rows:
                sql = f'SELECT round_order, source, captions IS NOT NULL, "{snake_case(label)}" IS NOT NULL FROM induced."{table.name}"'
                assert sorted(store.query(sql, ())) == sorted(
                    (order[round_id], round_id, round_id == board.placed.round_id, label in found) for round_id, found in readings.items()
                )
        store.close()


def _logs(one: Told, board: Content) -> list[Placed]:
    return [placed for placed in one.source.world.rounds if isinstance(placed.what, Log) and placed.what.kind is board.share.kind]


WRITTEN = {"column": "captions", "operator": "is_null", "value": None}
OPERATORS = {"average": "average", "highest": "maximum", "lowest": "minimum"}
SHOWN = {"column": "captions", "operator": "is_null", "value": False}


def _answer(tools: ToolBox, table: str, column: str, question: str) -> str:
    """What the right call, or the two of a comparison, answer to an aggregation question."""

    def compute(operator: str, *filters: object) -> dict[str, Any]:
        arguments = {"table": table, "target_column_expression": column, "operator": operator, "optional_column_filters": [*filters]}
        return dict(tools.call("Compute", json.dumps(arguments), allowance=10).returned["computed_result"])

    scope = () if " together" in question else (WRITTEN,)
    if "differ" in question:
        shown, written = compute("last", SHOWN), compute("last", WRITTEN)
        scale = 60 if shown["shown"].endswith(" min") else 3600 if shown["shown"].endswith(" h") else 1
        difference = abs(shown["value"] - written["value"]) / (scale if shown["unit"] == "s" else 1)
        return format_number(round(difference, 6), shown["shown"].partition(" ")[2])
    if "increase or decrease" in question:
        return "Increase" if compute("difference", *scope)["value"] > 0 else "Decrease"
    if "On which date" in question:
        arguments = {"table": table, "target_column_expression": column, "order": "descending", "optional_column_filters": [*scope]}
        return str(tools.call("Rank", arguments, allowance=1).returned["ranked_rows"][0]["time"])
    if match := re.search(r"above (?P<threshold>.+)\?", question):
        return str(compute("count", *scope, {"column": column, "operator": ">", "value": match["threshold"]})["shown"])
    operator = next(name for word, name in OPERATORS.items() if f" {word} " in question)
    return str(compute(operator, *scope)["shown"])


def test_every_aggregation_question_is_answered_by_the_right_calls(memories: list[tuple[Told, AdaMMMemory]]) -> None:
    n_asked = 0
    for one, memory in memories:
        store = TableStore(memory.folder / DATABASE, timeout_seconds=10)
        tools = ToolBox(memory, tables=store, retrieval=None)
        columns = {column.name: table.name for table in memory.tables for column in table.columns}
        for asked in [*text_aggregations(one.source), *pixel_aggregations(one.source)]:
            named = [name for name in columns if f" {name.replace('_', ' ')} value" in asked.text.casefold()]
            column = max(named, key=len)
            assert _answer(tools, columns[column], column, asked.text) == asked.answer, asked
            n_asked += 1
        store.close()
    assert n_asked >= 250
