"""Where metrics go."""

from pathlib import Path

import pytest

from policies.errors import CheckpointError
from policies.tracking import MetricsFile, TensorBoardTracker, WandbTracker, finite_or_none
from policies.training import train
from tests.policies.support import SmallRun


def test_rows_after_the_offset_are_cut(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.open(offset=0)
    file.write({"a": 1})
    kept = file.offset()
    file.write({"a": 2, "longer": "than what follows"})
    file.close()
    file.open(offset=kept)
    file.write({"a": 3})
    file.sync()
    file.close()
    file.close()
    assert file.path.read_text() == '{"a": 1}\n{"a": 3}\n'
    with pytest.raises(CheckpointError, match=r"has 18 bytes but the checkpoint was written at 19"):
        file.open(offset=19)


def test_numbers_json_cannot_hold_become_null() -> None:
    assert [finite_or_none(value) for value in (1.5, float("nan"), float("inf"))] == [1.5, None, None]


def test_tensorboard_receives_training_and_validation(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed")
    run = SmallRun()
    model = run.build()
    train(model, rollouts=3, monitor=run.monitor(tmp_path, model, rollouts=3, trackers=[TensorBoardTracker(tmp_path / "events")]))
    events = accumulator.EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    assert [event.step for event in events.Scalars("rollout/reward")] == [16, 32, 48]
    assert [event.step for event in events.Scalars("validation/reward")] == [0, 48]
    assert "time/update_seconds" in events.Tags()["scalars"]


def test_wandb_logs_offline_without_touching_the_training(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    weights = []
    for name in ("without", "with"):
        run = SmallRun()
        model = run.build()
        tracker = WandbTracker(
            project="test", name="toy", run_id="toy-0", folder=tmp_path / "wandb-files", mode="offline", config={"cost_weight": 0.1}
        )
        trackers = [tracker] if name == "with" else []
        train(model, rollouts=2, monitor=run.monitor(tmp_path / name, model, rollouts=2, trackers=trackers))
        weights.append(model.policy.parameters_to_vector())
    assert list((tmp_path / "wandb-files").rglob("*.wandb"))
    assert (weights[0] == weights[1]).all()


def test_trackers_that_were_never_opened_can_be_closed(tmp_path: Path) -> None:
    TensorBoardTracker(tmp_path).close()
    WandbTracker(project="p", name="n", run_id="i", folder=tmp_path, mode="offline", config={}).close()
