"""Tests of building AdaMM's memory: content, growing, resuming, failing."""

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.errors import ImageError
from data.history import History, ImageRef, Round, Session
from memory.adamm.database import DATABASE
from memory.adamm.model import LEVELS, AdaMMMemory
from memory.duckdb_file import open_read_only, quoted
from memory.errors import BankError
from models.errors import BackendError
from models.requests import Request
from tests.memory.adamm.fakes import SETTINGS, LabelModel, build, history, session
from tests.memory.adamm.letters import LetterImages, LetterTextImages
from tests.memory.fakes import draw

CHECKOUT = Path(__file__).resolve().parents[3]

FIRST = session(
    "S1", "2031-01-01", "Sleep: 5.5 hrs; Pulse: 61 bpm", "Sleep: 6 h 30 min; Pulse: 62 bpm; Pulse: 99 bpm; Mood: fine", "Hello there"
)
SECOND = session("S2", "", "Pulse: 63 bpm; Sleep: 400 min; Mood: calm", "Sleep: soon; Pulse: 64 bpm; Mood: Tense", "Sleep: 8 hrs")
THIRD = session("S3", "2031-01-09", *(f"Sleep: {n} hrs; Pulse: {n}0 bpm; Mood: Low {n}" for n in range(5, 13)))


def rows_of(memory: AdaMMMemory) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of the database, in the order in which it was written."""
    with open_read_only(memory.folder / DATABASE) as database:
        names = database.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        return {
            f"{schema}.{table}": database.execute(f"SELECT * FROM {quoted(schema)}.{quoted(table)} ORDER BY rowid").fetchall()
            for schema, table in names
        }


def assert_equal(one: AdaMMMemory, other: AdaMMMemory) -> None:
    """Two memories hold the same in every row, vector and event, whatever their folders."""
    assert rows_of(one) == rows_of(other)
    for name in ("tables", "schema_events", "nodes", "counts", "round_ids", "round_sessions"):
        assert getattr(one, name) == getattr(other, name)
    np.testing.assert_array_equal(one.table_vectors, other.table_vectors)
    for level in LEVELS:
        for name in ("text", "visual", "has_visual"):
            np.testing.assert_array_equal(getattr(one.vectors[level], name), getattr(other.vectors[level], name))


def tasks(requests: list[Request]) -> list[str]:
    return [request.task for request in requests]


def test_content(tmp_path: Path) -> None:
    memory = build(history(FIRST, SECOND), tmp_path, LabelModel())
    (table,) = memory.tables
    assert (table.name, table.n_rows, table.schema) == ("log_of_pulse", 4, 0)
    assert [(column.name, column.type, column.unit, column.n_unusable) for column in table.columns] == [
        ("pulse", "number", "bpm", 0),
        ("sleep", "duration", "hrs", 1),
    ]
    rows = rows_of(memory)
    day = date(2031, 1, 1)
    assert rows["induced.log_of_pulse"] == [  # two rounds of one session have one time
        (0, day, "S1:1", None, 61.0, 19_800.0),
        (1, day, "S1:2", None, 62.0, 23_400.0),
        (3, None, "S2:1", None, 63.0, 24_000.0),
        (4, None, "S2:2", None, 64.0, None),
    ]
    assert ("log_of_pulse", "pulse", 1, 2, False, False) in rows["main.cells"]
    assert (1, 2, "pulse", "99 bpm", "Pulse: 99 bpm", "") in rows["main.observations"]
    assert ("log_of_pulse", "sleep", 4, 0, False, True) in rows["main.cells"]
    assert [(event.kind, event.attributes, event.round_order) for event in memory.schema_events] == [("discovered", ("pulse", "sleep"), 4)]
    assert memory.round_ids == ("S1:1", "S1:2", "S1:3", "S2:1", "S2:2", "S2:3")
    assert memory.round_sessions == ("S1",) * 3 + ("S2",) * 3
    assert [node.rounds for node in memory.nodes["event"]] == [(order,) for order in range(6)]
    assert memory.nodes["event"][0].text == "user: Sleep: 5.5 hrs; Pulse: 61 bpm\nassistant: Noted."
    assert memory.table_vectors.shape == (1, 16)
    counts = {name: memory.counts[name] for name in ("rounds", "observations", "duplicates", "tables", "rows", "cells", "cells_unusable")}
    assert counts == {"rounds": 6, "observations": 13, "duplicates": 1, "tables": 1, "rows": 4, "cells": 8, "cells_unusable": 1}


def test_text_columns_are_followed_by_their_folded_companion(tmp_path: Path) -> None:
    memory = build(history(THIRD), tmp_path, LabelModel())
    with open_read_only(memory.folder / DATABASE) as database:
        described = database.execute("DESCRIBE induced.log_of_mood").fetchall()
        assert [row[:2] for row in described] == [
            *(("round_order", "INTEGER"), ("time", "DATE"), ("source", "VARCHAR"), ("captions", "VARCHAR")),
            *(("mood", "VARCHAR"), ("mood__folded", "VARCHAR"), ("pulse", "DOUBLE"), ("sleep", "DOUBLE")),
        ]
        assert database.execute("SELECT mood, mood__folded FROM induced.log_of_mood LIMIT 1").fetchall() == [("Low 5", "low 5")]


def test_images_are_read_captioned_and_embedded(tmp_path: Path) -> None:
    image = ImageRef("i1", draw(tmp_path / "a.png", 64, 64), "hidden")
    of = history(session("S1", "", ("Look", image), ("Then", ImageRef("i2", None, "a lake")), *["Weight: 70 kg; Pulse: 60 bpm"] * 3))
    model = LabelModel({"i1": {"Weight": "71 kg", "Pulse": "61 bpm"}})
    memory = build(of, tmp_path, model, image_encoder=LetterImages())
    rows = rows_of(memory)
    assert rows["induced.log_of_pulse"][0] == (0, None, "S1:1", "i1: picture i1", 61.0, 71.0)
    assert rows["main.observations"][0] == (0, 0, "weight", "71 kg", "", "i1")
    assert memory.vectors["event"].has_visual.tolist() == [True, False, False, False, False]
    assert memory.image_encoder_id == "letter pictures"
    assert memory.nodes["event"][0].text == "user: Look\nassistant: Noted.\n[image i1: picture i1]"
    assert {name: memory.counts[name] for name in ("images", "images_missing", "captions_absent")} == {
        **{"images": 2, "images_missing": 1, "captions_absent": 0},
    }
    searchable = build(of, tmp_path, model, image_encoder=LetterTextImages())
    assert searchable.nodes["event"][0].text == "user: Look\nassistant: Noted."  # words find the picture itself
    plain = build(of, tmp_path, model)
    assert (plain.image_encoder_id, plain.vectors["event"].visual.shape, plain.vectors["event"].has_visual.any()) == ("", (5, 0), False)


def test_evolution_appends_columns(tmp_path: Path) -> None:
    model = LabelModel()
    before = build(history(FIRST, SECOND), tmp_path, model)
    grown = build(history(FIRST, SECOND, THIRD), tmp_path, model)
    assert [column.attribute for table in before.tables for column in table.columns] == ["pulse", "sleep"]
    assert [column.attribute for table in grown.tables for column in table.columns] == ["pulse", "sleep", "mood"]
    assert [event.kind for event in grown.schema_events] == ["discovered", "extended"]
    rows = rows_of(grown)["induced.log_of_pulse"]
    assert [row[0] for row in rows] == [0, 1, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13]
    assert [row[6] for row in rows[:4]] == [None, "fine", "calm", "Tense"]  # rematerialised: earlier rounds have what they said


def test_growing_equals_a_full_rebuild_and_asks_for_the_new_rounds_only(tmp_path: Path) -> None:
    first, second, fresh = LabelModel(), LabelModel(), LabelModel()
    (tmp_path / "fresh").mkdir()
    build(history(FIRST, SECOND), tmp_path, first)
    grown = build(history(FIRST, SECOND, THIRD), tmp_path, second)
    assert_equal(grown, build(history(FIRST, SECOND, THIRD), tmp_path / "fresh", fresh))
    new = {f"user: {round_.user}\nassistant: Noted." for round_ in THIRD.rounds}
    assert {request.inputs.dialogue for request in second.asked if request.task == "extract"} == new
    assert tasks(first.asked).count("extract") == 6 and tasks(fresh.asked).count("extract") == 14
    described = {
        part
        for request in second.asked
        if request.task == "describe" and request.inputs.level == "episode"
        for part in request.inputs.parts
    }
    assert described == new
    known = {request.key("labels") for request in first.asked}
    assert not known & {request.key("labels") for request in second.asked}


LINES = st.lists(
    st.sampled_from(["A: 1 kg; B: 2", "A: 2 kg; B: 3; C: x", "B: 4; C: y", "C: z; A: 3", "A: -; B: -; C: -", "D: 1; A: 1", "hello"]),
    min_size=1,
    max_size=6,
)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, min_size=2, max_size=4), st.data())
def test_any_growth_equals_a_full_rebuild(tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]], data: st.DataObject) -> None:
    sessions = [session(f"S{number}", f"2031-01-{number + 1:02}", *some) for number, some in enumerate(lines)]
    low = replace(SETTINGS, min_support=2, episode_threshold=0.2, topic_threshold=0.2)
    step = data.draw(st.integers(1, len(sessions) - 1))
    stepwise, fresh = tmp_path_factory.mktemp("stepwise"), tmp_path_factory.mktemp("fresh")
    build(history(*sessions[:step]), stepwise, LabelModel(), settings=low)
    grown = build(history(*sessions), stepwise, LabelModel(), settings=low)
    assert_equal(grown, build(history(*sessions), fresh, LabelModel(), settings=low))


def _never(of: History, folder: Path) -> AdaMMMemory:
    model = LabelModel()
    memory = build(of, folder, model)
    assert model.asked == []
    return memory


def test_an_unchanged_history_is_opened_not_built(tmp_path: Path) -> None:
    of = history(FIRST, SECOND)
    built = build(of, tmp_path, LabelModel())
    (tmp_path / "calls.sqlite").unlink()
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "banks").rglob("*")}
    assert_equal(_never(of, tmp_path), built)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "banks").rglob("*")} == written


def test_everything_that_matters_makes_another_memory(tmp_path: Path) -> None:
    of = history(FIRST)
    changes: list[dict[str, object]] = [
        {},
        *({name: value} for name, value in vars(replace(SETTINGS, min_support=3, gap_days=2, topic_threshold=0.1)).items()),
    ]
    folders = {build(of, tmp_path, LabelModel(), settings=replace(SETTINGS, **change)).folder for change in changes}  # type: ignore[arg-type]
    assert len(folders) == 4
    folders |= {build(of, tmp_path, LabelModel(), image_encoder=LetterImages()).folder}
    folders |= {build(history(replace(FIRST, date="2031-01-02")), tmp_path, LabelModel()).folder}
    other = LabelModel()
    other.model_id = "another"
    assert len(folders | {build(of, tmp_path, other).folder}) == 7


class Failing(LabelModel):
    """Breaks off at its n-th request of a task."""

    def __init__(self, task: str, n: int, fail: Callable[[], None]) -> None:
        super().__init__()
        self._task, self._n, self._fail = task, n, fail

    def _answer(self, request: Request) -> str:
        if request.task == self._task:
            self._n -= 1
            if self._n < 0:
                self._fail()
        return super()._answer(request)


def _gone() -> None:
    raise BackendError("the server is gone; start it again")


@pytest.mark.parametrize(("task", "n"), [("extract", 2), ("table", 0), ("describe", 3)])
def test_a_failed_call_leaves_nothing_and_the_next_build_goes_on(tmp_path: Path, task: str, n: int) -> None:
    of, failing, second = history(FIRST, SECOND), Failing(task, n, _gone), LabelModel()
    with pytest.raises(BackendError, match="server is gone"):
        build(of, tmp_path, failing)
    assert [path for path in (tmp_path / "banks").iterdir() if path.is_dir()] == []
    build(of, tmp_path, second)
    assert len(failing.asked) - 1 + len(second.asked) == 18 and tasks(second.asked)[0] == task


def test_a_killed_build_leaves_nothing_that_is_read(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-m", "tests.memory.adamm.killed_build", str(tmp_path)], cwd=CHECKOUT, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = [path for path in (tmp_path / "banks").iterdir() if path.is_dir()]
    assert ".building-" in left.name
    model = LabelModel()
    memory = build(history(FIRST, SECOND), tmp_path, model)
    assert [path for path in (tmp_path / "banks").iterdir() if path.is_dir()] == [memory.folder]
    assert tasks(model.asked) == ["describe"] * 8  # three of eleven were answered before
    (tmp_path / "fresh").mkdir()
    assert_equal(memory, build(history(FIRST, SECOND), tmp_path / "fresh", LabelModel()))


def test_bad_images_are_reported_together_before_any_call(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_bytes(b"not a picture")
    rounds = (Round("r1", "x", "y", tuple(ImageRef(name, tmp_path / f"{name}.png", "") for name in ("bad", "gone"))),)
    model = LabelModel()
    with pytest.raises(ImageError, match=r"(?s)2 unusable image\(s\).*'bad'.*'gone'"):
        build(history(Session("S", "", rounds)), tmp_path, model)
    assert model.asked == [] and not (tmp_path / "banks").exists()


def test_an_empty_history_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BankError, match="history 'health' has no rounds"):
        build(history(), tmp_path, LabelModel())


def test_metadata_that_is_longer_than_the_encoder_reads_is_counted(tmp_path: Path) -> None:
    def truncated(value: str, folder: str) -> int:
        (tmp_path / folder).mkdir()
        return build(history(session("S", "", *[f"A: {value}; B: 1"] * 4)), tmp_path / folder, LabelModel()).counts["tables_truncated"]

    assert (truncated("short", "a"), truncated("long " * 300, "b")) == (0, 1)


def test_a_history_without_tables(tmp_path: Path) -> None:
    memory = build(history(session("S", "", "hello")), tmp_path, LabelModel())
    assert memory.tables == () and memory.table_vectors.shape == (0, 16)


def test_progress_ends_where_it_said(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    build(history(FIRST, SECOND), tmp_path, LabelModel(), progress=lambda *step: told.append(step))
    assert told[:5] == [("captions", 0, 0), ("extraction", 0, 6), ("extraction", 6, 6), ("tables", 0, 1), ("tables", 1, 1)]
    assert {stage for stage, _, _ in told[5:]} == {"descriptions"}
    assert [done for _, done, _ in told[5:]] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]  # an episode each, and a topic when it closes
    assert told[-1] == ("descriptions", 6, 6)
