"""What the tests of training share: the paper's settings and a small run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import PPO

from policies.callbacks import TrainingMonitor, ValidationResult
from policies.checkpoint import Resumed
from policies.ppo_settings import PPOSettings
from policies.training import build_ppo
from tests.policies.toy import ToyCentres, ToyQuestions, ToyVecEnv

TERMS = ("answer_reward", "shown")
TABLE_3 = PPOSettings(
    learning_rate=3e-4,
    clip_range=0.2,
    rollout_size=16,
    minibatch_size=16,
    update_epochs=4,
    gamma=1.0,
    gae_lambda=1.0,
    value_coefficient=0.5,
    entropy_coefficient=0.01,
    max_grad_norm=1.0,
    normalize_advantage=False,
)


def toy_questions(*, seed: int, count: int, dimension: int) -> ToyQuestions:
    """Return questions whose centres depend on the seed too."""
    rng = np.random.default_rng(seed)
    return ToyQuestions(rng, count=count, dimension=dimension, centres=ToyCentres(rng, dimension=dimension))


def mean_reward(model: PPO, questions: ToyQuestions) -> tuple[float, float]:
    """Return (mean reward, mean number of shown forms) of the deterministic policy."""
    count = len(questions)
    observations: dict[str, NDArray[Any]] = {
        "query": questions.query,
        "summaries": questions.summaries.reshape(count, -1),
        "available": questions.available.astype(np.int8),
        "token_costs": np.zeros((count, questions.available[0].size), np.float32),
    }
    actions, _ = model.predict(observations, deterministic=True)
    bits = actions.reshape(questions.available.shape) > 0.5
    return float(questions.score(np.arange(count), bits)[1].mean()), float(bits.sum(axis=(1, 2)).mean())


class SmallRun:
    """A run of 40 questions (2.5 rollouts an epoch) with d = 8 that validates on its training questions."""

    def __init__(self, *, seed: int = 0) -> None:
        """Build the environment."""
        self.questions = toy_questions(seed=5, count=40, dimension=8)
        self.environment = ToyVecEnv(self.questions, seed=seed)
        self.seed = seed

    def build(self) -> PPO:
        """Return a fresh model."""
        return build_ppo(self.environment, settings=TABLE_3, policy_options={"hidden_sizes": (16, 16)}, seed=self.seed)

    def monitor(self, folder: Path, model: PPO, *, rollouts: int, resumed: Resumed | None = None, **options: Any) -> TrainingMonitor:
        """Return a monitor with validation."""

        def validate() -> ValidationResult:
            reward, shown = mean_reward(model, self.questions)
            return ValidationResult(reward=reward, evidence_tokens=100 * shown, scores={"shown": shown})

        defaults: dict[str, Any] = {"validate": validate, "checkpoint_every": 100, "fingerprint": {"cost_weight": 0.1}, "terms": TERMS}
        return TrainingMonitor(
            folder, rollouts=rollouts, epochs_complete=self.environment.epochs_complete, resumed=resumed, **(defaults | options)
        )
