"""A run that was stopped and resumed equals one that was not, bit for bit."""

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from policies.callbacks import BEST_NAME, METRICS_NAME
from policies.checkpoint import RandomStates, capture, load_checkpoint, load_weights, preserved_randomness, save_weights, write_atomically
from policies.errors import CheckpointError, TrainingStopped
from policies.training import train
from tests.policies.support import SmallRun

FINGERPRINT = {"cost_weight": 0.1}
ROLLOUTS = 5  # Two epochs of 2.5 rollouts: validation after rollouts 0, 3 and 5.


def straight(folder: Path) -> PPO:
    """Train without a stop."""
    run = SmallRun()
    model = run.build()
    train(model, rollouts=ROLLOUTS, monitor=run.monitor(folder, model, rollouts=ROLLOUTS))
    return model


def resume(folder: Path) -> PPO:
    """Continue the run in ``folder`` with everything built anew and the generators somewhere else."""
    run = SmallRun()
    torch.manual_seed(99)
    np.random.seed(99)
    random.seed(99)
    resumed = load_checkpoint(folder / "resume.zip", run.environment, fingerprint=FINGERPRINT)
    torch.rand(3)
    monitor = run.monitor(folder, resumed.model, rollouts=ROLLOUTS, resumed=resumed)
    train(resumed.model, rollouts=ROLLOUTS, monitor=monitor)
    return resumed.model


def assert_same(a: PPO, b: PPO, folder_a: Path, folder_b: Path) -> None:
    """Compare weights, optimiser, counters, generators, the next questions, metrics and the best policy."""
    for name, tensor in a.policy.state_dict().items():
        assert torch.equal(tensor, b.policy.state_dict()[name]), name
    states_a, states_b = (model.policy.optimizer.state_dict() for model in (a, b))
    assert states_a["param_groups"] == states_b["param_groups"]
    assert states_a["state"].keys() == states_b["state"].keys() != set()
    for key, state in states_a["state"].items():
        for name, value in state.items():
            assert torch.equal(value, states_b["state"][key][name]), (key, name)
    assert (a.num_timesteps, a._n_updates) == (b.num_timesteps, b._n_updates)
    for name, array in a._last_obs.items():  # type: ignore[union-attr]  # a dict here
        np.testing.assert_array_equal(array, b._last_obs[name])  # type: ignore[index]  # a dict here
    for name in (METRICS_NAME, BEST_NAME):
        assert (folder_a / name).read_bytes() == (folder_b / name).read_bytes(), name
    state_a, state_b = (json.loads(zipfile.ZipFile(folder / "resume.zip").read("resume.json")) for folder in (folder_a, folder_b))
    assert state_a == state_b


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_a_failing_call_stops_the_run_with_a_checkpoint_that_resumes_exactly(tmp_path: Path, step: int) -> None:
    expected = straight(tmp_path / "straight")
    run = SmallRun()
    model = run.build()
    run.environment.fail_at_step = step
    monitor = run.monitor(tmp_path / "stopped", model, rollouts=ROLLOUTS)
    with pytest.raises(TrainingStopped, match=r"the answering model does not respond.*resume\.zip; resume") as stopped:
        train(model, rollouts=ROLLOUTS, monitor=monitor)
    assert stopped.value.checkpoint == tmp_path / "stopped" / "resume.zip"
    assert isinstance(stopped.value.__cause__, ConnectionError)
    assert_same(expected, resume(tmp_path / "stopped"), tmp_path / "straight", tmp_path / "stopped")


def test_a_killed_run_resumes_from_its_last_periodic_checkpoint(tmp_path: Path) -> None:
    """Checkpoints every two rollouts and at validation; the run dies during rollout 5, so the last one is of rollout 3."""

    class Killed(BaseException):
        """Stands for the process ending at once: no handler of the project catches it."""

    expected = straight(tmp_path / "straight")
    run = SmallRun()
    model = run.build()
    monitor = run.monitor(tmp_path / "killed", model, rollouts=ROLLOUTS, checkpoint_every=2)
    step, steps = run.environment.step_wait, 0

    def dying() -> Any:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise Killed
        return step()

    run.environment.step_wait = dying  # type: ignore[method-assign]  # the failure under test
    with pytest.raises(Killed):
        train(model, rollouts=ROLLOUTS, monitor=monitor)
    assert json.loads(zipfile.ZipFile(monitor.checkpoint).read("resume.json"))["progress"]["rollout"] == 3
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "killed" / METRICS_NAME).read_text().splitlines()]
    assert kinds == ["validation", "train", "train", "train", "validation", "train"]
    assert_same(expected, resume(tmp_path / "killed"), tmp_path / "straight", tmp_path / "killed")


def test_a_failing_validation_is_repeated_on_resume(tmp_path: Path) -> None:
    expected = straight(tmp_path / "straight")
    run = SmallRun()
    model = run.build()

    def fail() -> Any:
        raise ConnectionError("no answer")

    usual = run.monitor(tmp_path / "stopped", model, rollouts=ROLLOUTS)._validate
    assert usual is not None
    calls = iter([usual, fail])
    monitor = run.monitor(tmp_path / "stopped", model, rollouts=ROLLOUTS, validate=lambda: next(calls)())
    with pytest.raises(TrainingStopped, match="no answer"):
        train(model, rollouts=ROLLOUTS, monitor=monitor)
    assert_same(expected, resume(tmp_path / "stopped"), tmp_path / "straight", tmp_path / "stopped")


def test_a_finished_validation_is_not_repeated_on_resume(tmp_path: Path) -> None:
    """The run fails in rollout 4, right after the validation of epoch 1; only that of epoch 2 is left."""
    run = SmallRun()
    model = run.build()
    run.environment.fail_at_step = 4
    with pytest.raises(TrainingStopped):
        train(model, rollouts=ROLLOUTS, monitor=run.monitor(tmp_path, model, rollouts=ROLLOUTS))
    again = SmallRun()
    resumed = load_checkpoint(tmp_path / "resume.zip", again.environment, fingerprint=FINGERPRINT)
    usual = again.monitor(tmp_path, resumed.model, rollouts=ROLLOUTS, resumed=resumed)._validate
    assert usual is not None
    epochs = []

    def validate() -> Any:
        epochs.append(again.environment.epochs_complete())
        return usual()

    train(
        resumed.model,
        rollouts=ROLLOUTS,
        monitor=again.monitor(tmp_path, resumed.model, rollouts=ROLLOUTS, resumed=resumed, validate=validate),
    )
    assert epochs == [2]


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    model = straight(tmp_path)
    metrics, best = (tmp_path / METRICS_NAME).read_bytes(), (tmp_path / BEST_NAME).read_bytes()
    again = resume(tmp_path)
    assert (again.policy.parameters_to_vector() == model.policy.parameters_to_vector()).all()
    assert (tmp_path / METRICS_NAME).read_bytes() == metrics and (tmp_path / BEST_NAME).read_bytes() == best


def test_interrupting_keeps_a_checkpoint(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    run.environment.step_wait = interrupt  # type: ignore[method-assign]  # the failure under test
    with pytest.raises(KeyboardInterrupt) as stopped:
        train(model, rollouts=ROLLOUTS, monitor=run.monitor(tmp_path, model, rollouts=ROLLOUTS))
    assert any("resume.zip" in note for note in stopped.value.__notes__)
    assert (tmp_path / "resume.zip").exists()


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    straight(tmp_path)
    with pytest.raises(CheckpointError, match=r"cost_weight: 0\.1 in the checkpoint, 0\.3 now; data: None in the checkpoint, 'x' now"):
        load_checkpoint(tmp_path / "resume.zip", SmallRun().environment, fingerprint={"cost_weight": 0.3, "data": "x"})


@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "foreign", "entry", "version"])
def test_damaged_checkpoints_give_one_clear_error(tmp_path: Path, damage: str) -> None:
    straight(tmp_path)
    path = tmp_path / "resume.zip"
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "foreign":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("other", "x")
    else:
        path.unlink()
        document: dict[str, Any] = {}
        if damage == "version":
            document = {"format_version": 99, "fingerprint": {}, "environment": {}, "progress": {}}
            document["random"] = RandomStates.capture().to_json()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("resume.json", json.dumps(document))
    with pytest.raises(CheckpointError, match="format version 99" if damage == "version" else "is not a complete training checkpoint"):
        load_checkpoint(path, SmallRun().environment, fingerprint=FINGERPRINT)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ([], [1, 2], "is not of type 'object'"),
        (["fingerprint"], "x", r"\$\.fingerprint: 'x' is not of type 'object'"),
        (["progress"], {}, "'rollout' is a required property.*'metrics_bytes' is a required property"),
        (["progress", "best"], {"epoch": 1}, r"\$\.progress\.best: 'reward' is a required property"),
        (["environment"], {"questions": 7}, "does not fit this environment or is damaged: KeyError"),
        (["random"], {}, "does not fit this environment or is damaged: KeyError"),
        (["random", "torch"], "00ff", "does not fit this environment or is damaged: RuntimeError"),
        (["random", "numpy"], ["MT19937", [-1], 0, 0, 0.0], "does not fit this environment or is damaged: OverflowError"),
    ],
)
def test_foreign_json_in_a_checkpoint_is_one_clear_error(tmp_path: Path, place: list[str], value: Any, message: str) -> None:
    straight(tmp_path)
    path = tmp_path / "resume.zip"
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    document = {"": json.loads(entries["resume.json"])}
    inner, *names = ["", *place][::-1]
    part = document
    for name in names[::-1]:
        part = part[name]
    part[inner] = value
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (entries | {"resume.json": json.dumps(document[""]).encode()}).items():
            archive.writestr(name, content)
    with pytest.raises(CheckpointError, match=f"{message}.*move the file away"):
        load_checkpoint(path, SmallRun().environment, fingerprint=FINGERPRINT)


def test_an_environment_without_a_state_is_refused() -> None:
    run = SmallRun()
    model = run.build()
    run.environment.state_dict = lambda: {"bad": float("nan")}  # type: ignore[method-assign]  # the fault under test
    with pytest.raises(CheckpointError, match="state of ToyVecEnv is not a JSON document"):
        capture(model, progress={})


def test_random_states_survive_json() -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    random.gauss(0, 1)  # Leaves half of a pair in the state.
    np.random.randn()
    states = RandomStates.from_json(json.loads(json.dumps(RandomStates.capture().to_json())))
    expected = torch.rand(4).tolist(), np.random.randn(4).tolist(), [random.gauss(0, 1) for _ in range(4)]
    states.restore()
    assert (torch.rand(4).tolist(), np.random.randn(4).tolist(), [random.gauss(0, 1) for _ in range(4)]) == expected
    states.restore()
    with preserved_randomness():
        torch.rand(1)
        np.random.rand()
        random.random()
    assert torch.rand(4).tolist() == expected[0] and np.random.randn(4).tolist() == expected[1]


def test_weights_round_trip_without_pickle(tmp_path: Path) -> None:
    run = SmallRun()
    model, other = run.build(), SmallRun(seed=1).build()
    save_weights(model.policy, tmp_path / "w.safetensors")  # type: ignore[arg-type]  # PPO does not name its policy's class
    assert (other.policy.parameters_to_vector() != model.policy.parameters_to_vector()).any()
    load_weights(other.policy, tmp_path / "w.safetensors")  # type: ignore[arg-type]  # as above
    assert (other.policy.parameters_to_vector() == model.policy.parameters_to_vector()).all()
    (tmp_path / "bad.safetensors").write_bytes(b"not tensors")
    for path in (tmp_path / "bad.safetensors", tmp_path / "none.safetensors"):
        with pytest.raises(CheckpointError, match="does not hold the weights"):
            load_weights(other.policy, path)  # type: ignore[arg-type]  # as above


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
