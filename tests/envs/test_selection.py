import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as check_with_gymnasium
from stable_baselines3.common.env_checker import check_env as check_with_sb3

from envs.selection import EvidenceSelectionEnv
from envs.settings import Settings
from envs.workbench import Workbench

ENV_ID = "EvidenceGym/EvidenceSelection-v0"


@pytest.fixture
def env(workbench: Workbench) -> EvidenceSelectionEnv:
    questions = workbench.questions("train", refusals=False)
    normaliser = workbench.reward_normaliser(questions)
    return EvidenceSelectionEnv(questions, answerer=workbench.answerer, normaliser=normaliser, cost_weight=0.3)


def test_both_checkers_pass_without_a_warning(workbench: Workbench, tiny_settings: Settings) -> None:
    made = gymnasium.make(ENV_ID, settings=tiny_settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_with_gymnasium(made.unwrapped)
        check_with_sb3(made)


def test_equal_seeds_give_equal_rollouts(env: EvidenceSelectionEnv) -> None:
    def rollouts() -> list[tuple[object, ...]]:
        env.action_space.seed(5)
        seen = []
        for number in range(20):
            observation, info = env.reset(seed=11 if number == 0 else None)
            _, reward, *_ = env.step(env.action_space.sample())
            seen.append((info["question_id"], reward, observation["query"].tobytes()))
        return seen

    first, second = rollouts(), rollouts()
    assert first == second
    assert len({question_id for question_id, *_ in first}) == 20  # a permutation: none comes twice


def test_the_reward_is_made_of_its_terms(env: EvidenceSelectionEnv) -> None:
    rng = np.random.default_rng(0)
    for number in range(70):  # α is 0 until 64 samples
        env.reset(seed=0 if number == 0 else None)
        _, reward, terminated, truncated, info = env.step((rng.random(env.action_space.n) < 0.5).astype(np.int8))
        assert terminated and not truncated
        assert info["scaled_cost"] == pytest.approx(info["cost_scale"] * info["normalised_cost"])
        assert reward == pytest.approx(info["answer_reward"] - 0.3 * info["scaled_cost"])
        assert (info["cost_scale"] > 0) == (number >= 63)


def test_a_step_after_the_end_raises(env: EvidenceSelectionEnv) -> None:
    env.reset(seed=0)
    action = np.zeros(env.action_space.n, np.int8)
    env.step(action)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(action)


def test_an_empty_composition_is_asked_and_costs_nothing(env: EvidenceSelectionEnv) -> None:
    env.reset(seed=0)
    *_, info = env.step(np.zeros(env.action_space.n, np.int8))
    assert info["evidence_tokens"] == 0
    assert len(info["request_key"]) == 64


def test_unavailable_bits_change_nothing(env: EvidenceSelectionEnv, workbench: Workbench) -> None:
    questions = workbench.questions("train", refusals=False)
    number = next(row for row, item in enumerate(questions) if not item.available.all())
    infos = []
    for action in (np.ones(env.action_space.n, np.int8), questions[number].available.reshape(-1).astype(np.int8)):
        env.reset(seed=0, options={"question": number})
        infos.append(env.step(action)[-1])
    assert infos[0] == infos[1]
