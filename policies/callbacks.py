"""What happens between rollouts: metrics, validation, the best policy, checkpoints, the progress bar and the guard against NaN."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from policies.artefact import Json
from policies.checkpoint import Resumed, Snapshot, capture, preserved_randomness, save_weights, write_checkpoint
from policies.errors import TrainingDiverged
from policies.planner import PlannerPolicy
from policies.selector import SelectorPolicy
from policies.tracking import MetricsFile, Tracker, finite_or_none

CHECKPOINT_NAME = "resume.zip"
BEST_NAME = "best.safetensors"
METRICS_NAME = "metrics.jsonl"


@dataclass(frozen=True, kw_only=True)
class ValidationResult:
    """What the current policy, acting deterministically, achieves on the validation questions.

    Attributes:
        reward: Mean reward by the frozen normalisation; decides which policy is best.
        evidence_tokens: Mean C(z) in tokens per question; fewer wins between equal rewards.
        scores: Further means by name, such as ``f1``.
    """

    reward: float
    evidence_tokens: float
    scores: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best validated policy so far: after which epoch, with which reward and evidence tokens per question."""

    epoch: int
    reward: float
    evidence_tokens: float


@dataclass
class Seconds:
    """Wall time spent so far: collecting rollouts, in gradient steps, validating, and writing metrics and checkpoints."""

    collect: float = 0.0
    update: float = 0.0
    validate: float = 0.0
    record: float = 0.0


class TrainingMonitor(BaseCallback):
    """Watches one run; its folder receives ``metrics.jsonl``, ``resume.zip`` and ``best.safetensors``.

    Validation runs before the first rollout and after the update of each rollout that completes an epoch. Policies compete for
    ``best`` from the end of epoch 1 on. Snapshots are taken before and after validation, so that a failing call there or in the next
    step loses nothing.
    """

    model: OnPolicyAlgorithm

    def __init__(
        self,
        folder: Path,
        *,
        rollouts: int,
        terms: Sequence[str],
        epochs_complete: Callable[[], int],
        validate: Callable[[], ValidationResult] | None,
        checkpoint_every: int,
        fingerprint: Mapping[str, Json],
        trackers: Sequence[Tracker] = (),
        progress_bar: bool = False,
        resumed: Resumed | None = None,
    ) -> None:
        """Prepare the monitor; nothing is written before training starts.

        Args:
            folder: The run's folder.
            rollouts: Rollouts of the whole run, for the progress bar.
            terms: Names of the numbers in ``infos`` whose rollout means are recorded.
            epochs_complete: Returns how often every training question has been answered.
            validate: Evaluates the current policy; ``None`` for no validation.
            checkpoint_every: Rollouts between checkpoints; validation writes one as well.
            fingerprint: Settings that a resumed run must share.
            trackers: Further destinations of the metrics.
            progress_bar: Whether to show a progress bar.
            resumed: The checkpoint this run continues.

        Raises:
            ValueError: If ``checkpoint_every`` is not positive, or the folder holds a run that is not being resumed.
        """
        super().__init__()
        if checkpoint_every < 1:
            raise ValueError(f"checkpoint_every must be at least 1 rollout, not {checkpoint_every}")
        self.folder = folder
        self.seconds = Seconds()
        self._rollouts = rollouts
        self._terms = tuple(terms)
        self._epochs_complete = epochs_complete
        self._validate = validate
        self._checkpoint_every = checkpoint_every
        self._fingerprint = dict(fingerprint)
        self._trackers = tuple(trackers)
        self._metrics = MetricsFile(folder / METRICS_NAME)
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            disable=not progress_bar,
        )
        self._task: TaskID | None = None
        self._resumed = resumed
        if resumed is None and self.checkpoint.exists():
            raise ValueError(f"{self.checkpoint} belongs to an earlier run; resume it or train into another folder")
        start: dict[str, Any] = {"rollout": 0, "validated_epochs": -1, "best": None, "metrics_bytes": 0}
        progress = resumed.progress if resumed is not None else start
        self._rollout: int = progress["rollout"]
        self._validated_epochs: int = progress["validated_epochs"]
        self.best = Best(**progress["best"]) if progress["best"] is not None else None
        self._metrics_bytes: int = progress["metrics_bytes"]
        self._last_written = self._rollout
        self._ended: list[tuple[float, dict[str, float]]] = []  # reward and terms of what ended in the present rollout
        self._means: dict[str, float] = {}
        self._rolled_out = False
        self._snapshot: Snapshot | None = None
        self._clock = time.perf_counter()

    @property
    def checkpoint(self) -> Path:
        """The file from which the run can be resumed, once written."""
        return self.folder / CHECKPOINT_NAME

    def save_failure(self) -> Path | None:
        """Write the latest snapshot after a failure, unless a gradient step made it stale, and close everything.

        Returns:
            The checkpoint to resume from, just written or earlier; ``None`` if there is none.
        """
        if self._snapshot is not None:
            self._write(self._snapshot)
        self._close()
        return self.checkpoint if self.checkpoint.exists() else None

    def _on_training_start(self) -> None:
        self._metrics.open(offset=self._metrics_bytes)
        with preserved_randomness():
            for tracker in self._trackers:
                tracker.open(first_step=self.model.num_timesteps)
        self._bar.start()
        self._task = self._bar.add_task("", total=self._rollouts, completed=self._rollout)
        if self._resumed is not None:
            self._resumed.random.restore()
        self._clock = time.perf_counter()

    def _on_rollout_start(self) -> None:
        self._between_rollouts()

    def _on_step(self) -> bool:
        ended = np.flatnonzero(self.locals["dones"]).tolist()
        infos = self.locals["infos"]
        for term in self._terms:
            missing = [row for row in ended if term not in infos[row]]
            if missing:
                raise KeyError(
                    f"the environment's info lacks {term!r} (environment {missing[0]}); it has {', '.join(sorted(infos[missing[0]]))}"
                )
        self._ended += [(float(self.locals["rewards"][row]), {term: float(infos[row][term]) for term in self._terms}) for row in ended]
        if not self._ended:
            return True
        rewards = [reward for reward, _ in self._ended]
        means = {"rollout/reward": float(np.mean(rewards)), "rollout/reward_std": float(np.std(rewards))}
        means |= {f"rollout/{term}": float(np.mean([terms[term] for _, terms in self._ended])) for term in self._terms}
        wrong = [f"{name} = {value}" for name, value in means.items() if not math.isfinite(value)]
        if wrong:
            raise TrainingDiverged(
                f"rollout {self._rollout + 1}: {', '.join(wrong)}; the reward must be finite, look at the scorer and its inputs"
            )
        self._means = means
        return True

    def _on_rollout_end(self) -> None:
        self._rolled_out = True
        self._snapshot = None  # From here on gradient steps change the weights.
        self._lap("collect")

    def _on_training_end(self) -> None:
        self._between_rollouts()
        assert self._snapshot is not None
        if self._last_written != self._rollout:
            self._write(self._snapshot)
        self._close()

    def _between_rollouts(self) -> None:
        """Record the finished rollout, take a snapshot, validate at an epoch's end and write a checkpoint when due."""
        if self._rolled_out:
            self._lap("update")
            self._rollout += 1
            self._record_rollout(self._means)
            self._ended, self._means, self._rolled_out = [], {}, False
        self._snapshot = self._take_snapshot()
        self._lap("record")
        due = self._rollout - self._last_written >= self._checkpoint_every or not self.checkpoint.exists()
        epochs = self._epochs_complete()
        if self._validate is not None and epochs > self._validated_epochs:
            self._run_validation(self._validate, epochs)
            self._snapshot = self._take_snapshot()
            due = True
        if due:
            self._write(self._snapshot)
        self._lap("record")

    def _record_rollout(self, means: dict[str, float]) -> None:
        logged = {name: float(value) for name, value in self.model.logger.name_to_value.items() if name.startswith("train/")}
        self.model.logger.dump(self.model.num_timesteps)  # Only empties it: the logger has no outputs of its own.
        metrics = means | logged
        self._guard(logged)
        row: dict[str, Json] = {"kind": "train", "rollout": self._rollout, "questions": self.model.num_timesteps}
        row |= {name: finite_or_none(value) for name, value in sorted(metrics.items())}
        self._metrics.write(row)
        self._track(metrics | {f"time/{name}_seconds": value for name, value in asdict(self.seconds).items()})
        if self._task is not None:
            self._bar.update(self._task, completed=self._rollout, description=f"reward {means.get('rollout/reward', math.nan):.3f}")

    def _guard(self, logged: dict[str, float]) -> None:
        wrong = [f"{name} = {logged[name]}" for name in ("train/loss", "train/approx_kl") if not math.isfinite(logged[name])]
        wrong += [f"weight {name}" for name, tensor in self.model.policy.named_parameters() if not torch.isfinite(tensor).all()]
        if wrong:
            raise TrainingDiverged(
                f"not finite after rollout {self._rollout}: {', '.join(wrong)}; resume from the last checkpoint or lower the learning rate"
            )

    def _run_validation(self, validate: Callable[[], ValidationResult], epochs: int) -> None:
        with preserved_randomness():
            result = validate()
        scores = {"reward": result.reward, "evidence_tokens": result.evidence_tokens, **result.scores}
        wrong = [f"{name} = {value}" for name, value in scores.items() if not math.isfinite(value)]
        if wrong:
            raise TrainingDiverged(f"validation after epoch {epochs}: {', '.join(wrong)}; the scores must be finite")
        better = epochs >= 1 and (
            self.best is None or (-result.reward, result.evidence_tokens) < (-self.best.reward, self.best.evidence_tokens)
        )
        if better:
            policy = self.model.policy
            assert isinstance(policy, SelectorPolicy | PlannerPolicy)
            save_weights(policy, self.folder / BEST_NAME)
            self.best = Best(epoch=epochs, reward=result.reward, evidence_tokens=result.evidence_tokens)
        self._validated_epochs = epochs
        metrics = {f"validation/{name}": float(value) for name, value in sorted(scores.items())}
        row: dict[str, Json] = {"kind": "validation", "rollout": self._rollout, "questions": self.model.num_timesteps, "epoch": epochs}
        self._metrics.write(row | metrics | {"best": better})
        self._track(metrics)
        self._lap("validate")

    def _track(self, metrics: Mapping[str, float]) -> None:
        if self._trackers:
            with preserved_randomness():
                for tracker in self._trackers:
                    tracker.log(metrics, step=self.model.num_timesteps)

    def _take_snapshot(self) -> Snapshot:
        return capture(
            self.model,
            progress={
                "rollout": self._rollout,
                "validated_epochs": self._validated_epochs,
                "best": asdict(self.best) if self.best is not None else None,
                "metrics_bytes": self._metrics.offset(),
            },
        )

    def _write(self, snapshot: Snapshot) -> None:
        self._metrics.sync()  # The checkpoint names a length of this file.
        write_checkpoint(self.checkpoint, self.model, snapshot=snapshot, fingerprint=self._fingerprint)
        self._last_written = self._rollout

    def _lap(self, name: str) -> None:
        now = time.perf_counter()
        setattr(self.seconds, name, getattr(self.seconds, name) + now - self._clock)
        self._clock = now

    def _close(self) -> None:
        self._snapshot = None
        self._bar.stop()
        self._metrics.close()
        for tracker in self._trackers:
            tracker.close()
