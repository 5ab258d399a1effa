"""Tests of building the parts of the memory that the settings name, with the embedded engine."""

from pathlib import Path

import pytest

from data.history import History
from envs.banks import check_parts
from envs.errors import SettingsError
from envs.run_folder import LEDGER
from envs.settings import Settings, default_settings
from envs.workbench import Workbench, make_selection_env, open_workbench
from memory.adamm.database import DATABASE, TableStore
from models.ledger import read_ledger


def test_a_part_that_is_needed_and_not_built_is_told_at_once(tmp_path: Path) -> None:
    settings = default_settings(memory="adamm", cache=tmp_path / "cache", data={"root": tmp_path / "sample"})
    message = r"memory.builder=adamm does not build HiVe-Mem's bank, which is needed here: choose memory=both"
    with pytest.raises(SettingsError, match=message):
        make_selection_env(settings)
    with pytest.raises(SettingsError, match=r"memory.builder=hive does not build AdaMM's memory"):
        check_parts(default_settings(), ["hive", "adamm"])
    assert list(tmp_path.iterdir()) == []


def test_both_parts_share_their_captions(tiny_settings: Settings, workbench: Workbench, tmp_path: Path) -> None:
    assert workbench.adamm == {} and workbench.image_encoder is None
    memory = default_settings(memory="both").memory
    both = open_workbench(tiny_settings.model_copy(update={"memory": memory}), folder=tmp_path)
    assert {name: bank.folder for name, bank in both.banks.items()} == {name: bank.folder for name, bank in workbench.banks.items()}
    calls = list(read_ledger(tmp_path / LEDGER))
    (history,) = both.dataset.histories
    assert [call.hit for call in calls if call.task == "caption"] == [True] * history_images(history)
    assert [call.hit for call in calls if call.task == "extract"] == [False] * sum(1 for _ in history.rounds)

    memory = both.adamm[history.id]
    assert memory.folder.parent == both.banks[history.id].folder.parent
    assert both.image_encoder is not None
    assert (memory.text_encoder_id, memory.image_encoder_id) == (both.encoder.id, both.image_encoder.id)
    assert len(memory.tables) >= 2 and memory.counts["observations_not_recognised"] == 0
    store = TableStore(memory.folder / DATABASE, timeout_seconds=20)
    for table in memory.tables:
        ((n_rows, n_times),) = store.query(f'SELECT count(*), count(time) FROM induced."{table.name}"', [])
        assert n_rows == n_times == table.n_rows >= 4
    store.close()


def history_images(history: History) -> int:
    return sum(image.path is not None for image in history.images)


def test_adamm_alone(tiny_settings: Settings, workbench: Workbench, tmp_path: Path) -> None:
    settings = tiny_settings.model_copy(update={"memory": default_settings(memory="adamm").memory})
    alone = open_workbench(settings, folder=tmp_path, needs=("adamm",))
    assert alone.banks == {} and list(alone.adamm) == list(workbench.banks)
    assert {call.task for call in read_ledger(tmp_path / LEDGER)} <= {"caption", "extract", "table", "describe"}
