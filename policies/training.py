"""Builds PPO for the selector and runs it for a given number of rollouts (HiVe-Mem Table 3)."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from policies.callbacks import TrainingMonitor
from policies.errors import TrainingStopped
from policies.planner import PlannerPolicy
from policies.ppo_settings import PPOSettings
from policies.selector import SelectorPolicy


def count_rollouts(*, questions: int, epochs: int, rollout_size: int) -> int:
    """Return how many rollouts show each of ``questions`` at least ``epochs`` times; the last may reach into the next epoch.

    Raises:
        ValueError: If an argument is not positive.
    """
    if min(questions, epochs, rollout_size) < 1:
        raise ValueError(f"questions ({questions}), epochs ({epochs}) and rollout_size ({rollout_size}) must be positive")
    return math.ceil(questions * epochs / rollout_size)


def build_ppo(environment: VecEnv, *, settings: PPOSettings, policy_options: dict[str, Any], seed: int) -> PPO:
    """Return PPO with a fresh selector on the CPU; seeds Python's, NumPy's and torch's global generators and the environment.

    Args:
        environment: One-step evidence-selection environments, as many as ``settings.rollout_size``.
        settings: Hyperparameters.
        policy_options: Keyword arguments of `SelectorPolicy`.
        seed: Seed of the run.

    Raises:
        ValueError: If the number of environments is not the rollout size, or the minibatch does not divide it.
    """
    if environment.num_envs != settings.rollout_size:
        raise ValueError(
            f"rollout_size is {settings.rollout_size} but there are {environment.num_envs} parallel environments; make them equal"
        )
    if settings.rollout_size % settings.minibatch_size:
        raise ValueError(f"minibatch_size {settings.minibatch_size} must divide rollout_size {settings.rollout_size}")
    return PPO(SelectorPolicy, environment, n_steps=1, policy_kwargs=dict(policy_options), seed=seed, **_options(settings))


def build_masked_ppo(environment: VecEnv, *, settings: PPOSettings, n_steps: int, policy_options: dict[str, Any], seed: int) -> MaskablePPO:
    """Return PPO with masked actions and a fresh planner on the CPU; seeds as `build_ppo` does.

    Args:
        environment: Tool-planning environments, as many as ``settings.rollout_size``, with ``action_masks``.
        settings: Hyperparameters.
        n_steps: Steps of each environment per rollout.
        policy_options: Keyword arguments of `PlannerPolicy`.
        seed: Seed of the run.
    """
    return MaskablePPO(PlannerPolicy, environment, n_steps=n_steps, policy_kwargs=dict(policy_options), seed=seed, **_options(settings))


def _options(settings: PPOSettings) -> dict[str, Any]:
    """The settings by the names that both algorithms give them."""
    return {
        "learning_rate": settings.learning_rate,
        "batch_size": settings.minibatch_size,
        "n_epochs": settings.update_epochs,
        "gamma": settings.gamma,
        "gae_lambda": settings.gae_lambda,
        "clip_range": settings.clip_range,
        "normalize_advantage": settings.normalize_advantage,
        "ent_coef": settings.entropy_coefficient,
        "vf_coef": settings.value_coefficient,
        "max_grad_norm": settings.max_grad_norm,
        "device": "cpu",
        "verbose": 0,
    }


def train(model: OnPolicyAlgorithm, *, rollouts: int, monitor: TrainingMonitor) -> None:
    """Train until ``rollouts`` rollouts are done, counting those of the run that ``model`` was resumed from.

    Args:
        model: From `build_ppo` or `policies.checkpoint.load_checkpoint`.
        rollouts: Rollouts of the whole run.
        monitor: Metrics, validation and checkpoints.

    Raises:
        TrainingStopped: If anything fails; the latest state has been written where possible, and the cause is chained.
        KeyboardInterrupt: If the user stops the run, with a note on how to resume.
    """
    model.set_logger(Logger(folder=None, output_formats=[]))
    remaining = rollouts * model.n_envs * model.n_steps - model.num_timesteps
    try:
        # Counters are never reset: a fresh model starts at 0 anyway, and a resumed one must keep its questions. The interval keeps SB3
        # from printing; the monitor reads the logger instead.
        model.learn(total_timesteps=max(remaining, 0), callback=monitor, log_interval=sys.maxsize, reset_num_timesteps=False)
    except Exception as error:
        checkpoint = _saved(monitor)
        what = str(error) or type(error).__name__
        raise TrainingStopped(f"training stopped: {what}. {_advice(checkpoint)}", checkpoint=checkpoint) from error
    except KeyboardInterrupt as interrupt:
        checkpoint = _saved(monitor)
        interrupt.add_note(
            f"the state is in {checkpoint}" if checkpoint else "no checkpoint had been written: a new run starts from the beginning"
        )
        raise


def _saved(monitor: TrainingMonitor) -> Path | None:
    """Write the latest state; where even that fails (a full disk), the last checkpoint that was written is what there is."""
    try:
        return monitor.save_failure()
    except OSError:
        return monitor.checkpoint if monitor.checkpoint.exists() else None


def _advice(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "No checkpoint had been written, so a new run starts from the beginning"
    return f"The state is in {checkpoint}; resume from it once the cause is removed"
