"""PPO on the toy environment: it learns, and its settings are checked."""

import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from envs.settings import default_settings
from policies.callbacks import BEST_NAME, TrainingMonitor, ValidationResult
from policies.checkpoint import load_weights
from policies.selector import SelectorPolicy
from policies.training import build_ppo, count_rollouts, train
from tests.policies.support import TABLE_3, TERMS, SmallRun, mean_reward, toy_questions
from tests.policies.toy import ToyVecEnv


def learn_toy(seed: int, folder: Path) -> tuple[float, float]:
    """Train with the default configuration for 6 epochs of 900 questions and keep the policy that is best on 300 others.

    Returns:
        Mean rewards on 300 further questions before training and of the kept policy, as shares of the optimum there.
    """
    torch.set_num_threads(1)
    questions = toy_questions(seed=1000 + seed, count=1500, dimension=384)
    held_out, validation = questions.split_off(300), questions.split_off(300)
    environment = ToyVecEnv(questions, seed=seed)
    settings = default_settings()
    model = build_ppo(environment, settings=settings.algo.ppo(settings.env.n_envs), policy_options=settings.policy_options, seed=seed)
    start = mean_reward(model, held_out)[0]
    rollouts = count_rollouts(questions=len(questions), epochs=settings.algo.epochs, rollout_size=settings.env.n_envs)

    def validate() -> ValidationResult:
        reward, shown = mean_reward(model, validation)
        return ValidationResult(reward=reward, evidence_tokens=shown, scores={})

    monitor = TrainingMonitor(
        folder / str(seed),
        rollouts=rollouts,
        terms=TERMS,
        epochs_complete=environment.epochs_complete,
        validate=validate,
        checkpoint_every=rollouts,
        fingerprint={},
    )
    train(model, rollouts=rollouts, monitor=monitor)
    assert isinstance(model.policy, SelectorPolicy)
    load_weights(model.policy, folder / str(seed) / BEST_NAME)
    return start / held_out.optimum(), mean_reward(model, held_out)[0] / held_out.optimum()


def test_default_configuration_solves_the_toy_on_five_seeds(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(learn_toy, range(5), [tmp_path] * 5))
    assert all(start < 0.9 for start, _ in results), results  # Nothing is solved before training.
    assert all(end >= 0.95 for _, end in results), results


def test_last_rollout_may_reach_into_the_next_epoch() -> None:
    assert count_rollouts(questions=900, epochs=6, rollout_size=16) == 338  # 5,400 / 16 = 337.5
    assert count_rollouts(questions=32, epochs=1, rollout_size=16) == 2
    with pytest.raises(ValueError, match="must be positive"):
        count_rollouts(questions=0, epochs=1, rollout_size=16)


def test_settings_reach_ppo() -> None:
    settings = replace(
        TABLE_3, learning_rate=1e-3, clip_range=0.1, minibatch_size=8, update_epochs=2, gamma=0.9, gae_lambda=0.8, value_coefficient=0.4,
        entropy_coefficient=0.02, max_grad_norm=0.7, normalize_advantage=True,
    )  # fmt: skip
    model = build_ppo(SmallRun().environment, settings=settings, policy_options={"hidden_sizes": (8,)}, seed=1)
    assert (model.n_steps, model.batch_size, model.n_epochs, model.gamma, model.gae_lambda) == (1, 8, 2, 0.9, 0.8)
    assert (model.vf_coef, model.ent_coef, model.max_grad_norm, model.normalize_advantage) == (0.4, 0.02, 0.7, True)
    assert model.lr_schedule(1.0) == 1e-3 and model.clip_range(0.0) == 0.1  # type: ignore[operator]  # SB3 allows a number too
    assert isinstance(model.policy, SelectorPolicy)
    assert model.device == torch.device("cpu") and model.policy.network.logit_layer.in_features == 8


def test_rollout_size_must_fit() -> None:
    with pytest.raises(ValueError, match="rollout_size is 32 but there are 16"):
        build_ppo(SmallRun().environment, settings=replace(TABLE_3, rollout_size=32), policy_options={}, seed=0)
    with pytest.raises(ValueError, match="minibatch_size 5 must divide"):
        build_ppo(SmallRun().environment, settings=replace(TABLE_3, minibatch_size=5), policy_options={}, seed=0)


def test_same_seed_gives_identical_weights_and_another_seed_does_not(tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        run = SmallRun(seed=seed)
        model = run.build()
        train(model, rollouts=4, monitor=run.monitor(tmp_path / name, model, rollouts=4))
        weights.append(model.policy.parameters_to_vector())
    assert (weights[0] == weights[1]).all()
    assert (weights[0] != weights[2]).any() and all(math.isfinite(value) for value in weights[0][:5])


def test_training_stops_at_the_asked_rollout(tmp_path: Path) -> None:
    run = SmallRun()
    model = run.build()
    train(model, rollouts=3, monitor=run.monitor(tmp_path, model, rollouts=3))
    assert model.num_timesteps == 48 and run.environment.answered == 48
