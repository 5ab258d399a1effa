import json
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from envs.answering import Answerer
from envs.batched import BatchedSelectionEnv
from envs.metrics.text import profile
from envs.selection import EvidenceSelectionEnv
from envs.workbench import Workbench
from models.errors import BackendError
from models.requests import Reply, Request


class CountingDoor:
    """Passes requests on and records the sizes of the batches."""

    def __init__(self, workbench: Workbench) -> None:
        self.batches: list[int] = []
        self.is_broken = False
        self._generate = workbench.door.generate

    def generate(self, requests: Sequence[Request]) -> list[Reply]:
        if self.is_broken:
            raise BackendError("the model is gone")
        self.batches.append(len(requests))
        return self._generate(requests)


@pytest.fixture
def door(workbench: Workbench) -> CountingDoor:
    return CountingDoor(workbench)


def make(workbench: Workbench, door: CountingDoor, *, seed: int = 0, n_envs: int = 4) -> BatchedSelectionEnv:
    questions = workbench.questions("train", refusals=False)
    answerer = Answerer(
        door.generate, forms=workbench.answerer.forms, counter=workbench.door.backend.counter, metric=profile("mem_gallery")
    )
    normaliser = workbench.reward_normaliser(questions)
    return BatchedSelectionEnv(questions, answerer=answerer, normaliser=normaliser, cost_weight=0.1, n_envs=n_envs, seed=seed)


def play(env: BatchedSelectionEnv, n_steps: int, seed: int) -> list[tuple[list[str], list[float]]]:
    rng = np.random.default_rng(seed)
    played = []
    for _ in range(n_steps):
        _, rewards, dones, infos = env.step((rng.random((env.num_envs, env.action_space.n)) < 0.5).astype(np.int8))
        assert dones.all()
        played.append(([info["question_id"] for info in infos], rewards.tolist()))
    return played


def test_a_step_sends_one_batch_and_repeated_compositions_none(workbench: Workbench, door: CountingDoor) -> None:
    env = make(workbench, door)
    observations = env.reset()
    assert {name: array.shape for name, array in observations.items()} == {
        "query": (4, 384),
        "summaries": (4, 7 * 384),
        "available": (4, 7, 5),
        "token_costs": (4, 35),
    }
    state = env.state_dict()
    everything = np.ones((4, 35), np.int8)
    env.step(everything)
    assert door.batches == [4]
    env.load_state_dict(state)
    env.step(everything)
    assert door.batches == [4]


def test_it_rewards_as_the_single_environment_does(workbench: Workbench, door: CountingDoor) -> None:
    batched = make(workbench, door, n_envs=1)
    batched.reset()
    questions = workbench.questions("train", refusals=False)
    single = EvidenceSelectionEnv(
        questions, answerer=workbench.answerer, normaliser=workbench.reward_normaliser(questions), cost_weight=0.1
    )
    rng = np.random.default_rng(1)
    numbers = {item.question.id: row for row, item in enumerate(questions)}
    for _ in range(70):
        action = (rng.random(35) < 0.5).astype(np.int8)
        _, rewards, _, infos = batched.step(action[None])
        single.reset(options={"question": numbers[infos[0]["question_id"]]})
        _, reward, _, _, info = single.step(action)
        assert rewards[0] == pytest.approx(reward, abs=1e-6)
        assert info["request_key"] == infos[0]["request_key"]


def test_a_restored_state_continues_identically(workbench: Workbench, door: CountingDoor) -> None:
    straight, resumed = make(workbench, door), make(workbench, door)
    straight.reset()
    play(straight, 12, seed=0)  # past the first epoch's end
    assert straight.n_epochs_done >= 1
    assert straight.validation_reward is not None
    state = json.loads(json.dumps(straight.state_dict()))
    resumed.load_state_dict(state)
    assert resumed.validation_reward == straight.validation_reward
    assert play(resumed, 5, seed=9) == play(straight, 5, seed=9)


def test_a_state_of_other_questions_is_refused(workbench: Workbench, door: CountingDoor) -> None:
    env = make(workbench, door)
    env.reset()
    with pytest.raises(ValueError, match="of 3 questions"):
        env.load_state_dict(env.state_dict() | {"n_questions": 3})


def test_a_failed_call_is_an_error_and_never_a_reward(workbench: Workbench, door: CountingDoor) -> None:
    env = make(workbench, door)
    env.reset()
    door.is_broken = True
    before = env.normaliser.state_dict()
    with pytest.raises(BackendError, match="gone"):
        env.step(np.ones((4, 35), np.int8))
    assert env.n_answered == 0
    assert env.normaliser.state_dict() == before


def test_answering_draws_nothing_from_the_global_generators(workbench: Workbench, door: CountingDoor) -> None:
    """A backend that loads a network for the first new picture must not change what a policy samples afterwards."""
    env = make(workbench, door)
    env.reset()
    generate = door.generate

    def drawing(requests: Sequence[Request]) -> list[Reply]:
        torch.rand(3)
        np.random.rand(3)  # the legacy generator is the one that SB3 uses
        return generate(requests)

    env._answerer._generate = drawing  # stands for any backend
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    env.step(np.ones((4, 35), np.int8))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])
