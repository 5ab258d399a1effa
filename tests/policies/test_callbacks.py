"""Validation, the choice of the best policy, metrics and the guard against NaN."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from policies.callbacks import BEST_NAME, METRICS_NAME, ValidationResult
from policies.checkpoint import load_checkpoint, load_weights
from policies.errors import TrainingDiverged, TrainingStopped
from policies.training import train
from tests.policies.support import SmallRun


def rows(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Return the rows of one kind."""
    parsed = [json.loads(line) for line in (folder / METRICS_NAME).read_text(encoding="utf-8").splitlines()]
    return [row for row in parsed if row["kind"] == kind]


def scripted(results: list[tuple[float, float]]) -> Any:
    """Return a validation function that gives these (reward, evidence tokens) in order."""
    remaining = iter(results)

    def validate() -> ValidationResult:
        reward, tokens = next(remaining)
        return ValidationResult(reward=reward, evidence_tokens=tokens, scores={})

    return validate


def test_validates_before_training_and_after_each_epoch(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()
    train(model, rollouts=8, monitor=run.monitor(tmp_path, model, rollouts=8))
    validated = rows(tmp_path, "validation")
    # 40 questions: epochs end inside rollouts 3 (48), 5 (80), 8 (120).
    assert [(row["epoch"], row["rollout"]) for row in validated] == [(0, 0), (1, 3), (2, 5), (3, 8)]
    assert all(row["validation/evidence_tokens"] == pytest.approx(100 * row["validation/shown"]) for row in validated)


@pytest.mark.parametrize(
    ("results", "epoch"),
    [
        ([(9.0, 1), (0.1, 50), (0.3, 90), (0.2, 10)], 2),  # The highest reward; what came before training does not compete.
        ([(0.0, 1), (0.3, 90), (0.3, 50), (0.3, 50)], 2),  # A tie goes to fewer tokens, then to the earlier policy.
        ([(0.0, 1), (0.3, 50), (0.3, 90), (0.29, 1)], 1),
        ([(0.0, 1), (-0.5, 50), (-0.6, 9), (-0.4, 99)], 3),  # Negative rewards are ordinary.
    ],
)
def test_best_policy(tmp_path: Path, results: list[tuple[float, float]], epoch: int) -> None:
    run = SmallRun()
    model = run.build()
    weights = []
    script = scripted(results)

    def validate() -> Any:
        weights.append(model.policy.parameters_to_vector())
        return script()

    monitor = run.monitor(tmp_path, model, rollouts=8, validate=validate)
    train(model, rollouts=8, monitor=monitor)
    assert monitor.best is not None and monitor.best.epoch == epoch
    assert (monitor.best.reward, monitor.best.evidence_tokens) == results[epoch]
    load_weights(model.policy, tmp_path / BEST_NAME)  # type: ignore[arg-type]  # PPO does not name its policy's class
    assert (model.policy.parameters_to_vector() == weights[epoch]).all()
    assert (weights[0] != weights[1]).any()
    assert [row["best"] for row in rows(tmp_path, "validation")].count(True) >= 1


def test_metrics_hold_every_term_and_no_clock(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()
    monitor = run.monitor(tmp_path, model, rollouts=3)
    train(model, rollouts=3, monitor=monitor)
    recorded = rows(tmp_path, "train")
    assert [(row["rollout"], row["questions"]) for row in recorded] == [(1, 16), (2, 32), (3, 48)]
    for row in recorded:
        # R = answer - 0.02 a bit, so the recorded means must agree; float32 rewards.
        assert row["rollout/reward"] == pytest.approx(row["rollout/answer_reward"] - 0.02 * row["rollout/shown"], abs=1e-6)
        assert {"train/loss", "train/value_loss", "train/approx_kl", "train/entropy_loss", "train/explained_variance"} <= row.keys()
        assert not any("time" in name or "fps" in name for name in row)
    assert min(monitor.seconds.collect, monitor.seconds.update, monitor.seconds.validate) > 0


def test_validation_cannot_change_the_training(tmp_path: Path) -> None:
    weights = []
    for name, draws in (("quiet", 0), ("noisy", 5)):
        run = SmallRun()
        model = run.build()

        def validate(draws: int = draws) -> ValidationResult:
            torch.rand(draws)
            np.random.rand(draws)
            return ValidationResult(reward=0.0, evidence_tokens=0.0, scores={})

        train(model, rollouts=4, monitor=run.monitor(tmp_path / name, model, rollouts=4, validate=validate))
        weights.append(model.policy.parameters_to_vector())
    assert (weights[0] == weights[1]).all()


def test_a_reward_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()
    score = run.questions.score
    run.questions.score = lambda *given: tuple(values * math.nan for values in score(*given))  # type: ignore[method-assign]  # the fault under test
    with pytest.raises(TrainingStopped, match="rollout 1: rollout/reward = nan") as stopped:
        train(model, rollouts=2, monitor=run.monitor(tmp_path, model, rollouts=2, validate=None))
    assert isinstance(stopped.value.__cause__, TrainingDiverged)
    assert np.isfinite(model.policy.parameters_to_vector()).all()


def test_weights_that_are_not_finite_stop_the_run_and_are_not_saved(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()
    step = model.policy.optimizer.step

    def explode(*arguments: Any) -> Any:
        result = step(*arguments)
        if run.environment.answered == 32:
            with torch.no_grad():
                next(iter(model.policy.parameters())).fill_(math.nan)
        return result

    model.policy.optimizer.step = explode  # type: ignore[method-assign,assignment]  # the fault under test
    monitor = run.monitor(tmp_path, model, rollouts=4, validate=None, checkpoint_every=1)
    with pytest.raises(TrainingStopped, match=r"not finite after rollout 2: .*weight network"):
        train(model, rollouts=4, monitor=monitor)
    other = SmallRun()
    resumed = load_checkpoint(monitor.checkpoint, other.environment, fingerprint={"cost_weight": 0.1})
    assert resumed.model.num_timesteps == 16 and np.isfinite(resumed.model.policy.parameters_to_vector()).all()


def test_a_missing_term_is_named(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()
    with pytest.raises(TrainingStopped, match=r"info lacks 'cost'.*answer_reward, shown"):
        train(model, rollouts=1, monitor=run.monitor(tmp_path, model, rollouts=1, terms=("cost",)))


def test_an_earlier_run_is_not_overwritten(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()
    train(model, rollouts=1, monitor=run.monitor(tmp_path, model, rollouts=1))
    with pytest.raises(ValueError, match="belongs to an earlier run"):
        run.monitor(tmp_path, model, rollouts=1)
    with pytest.raises(ValueError, match="checkpoint_every must be at least 1"):
        run.monitor(tmp_path / "other", model, rollouts=1, checkpoint_every=0)
