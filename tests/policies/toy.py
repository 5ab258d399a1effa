"""A toy of the evidence-selection job whose best composition is known: used to show that training learns, and to test resuming."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

FORMS = 5
MEMORIES = 7
QUESTION_KINDS = 5
MEMORY_KINDS = 4
BIT_COST = 0.02


class ToyQuestions:
    """Questions with embeddings, availability and the bits that answer them.

    Each question has one of five kinds and seven candidate memories of four kinds; embeddings are unit vectors scattered around
    the centre of their kind (cosine to the centre about 0.7). A question of kind t is answered by form t of the memories of kind
    t mod 4, where that form is available: the answer scores 1 when all of these bits are shown and half their share otherwise.
    Every shown bit costs 0.02, useful or not. Forms 2 to 4 exist only in the two thirds of memories that have an image.
    """

    def __init__(self, rng: np.random.Generator, *, count: int, dimension: int, centres: ToyCentres) -> None:
        """Draw ``count`` questions that have an answer."""
        self.query = np.zeros((count, dimension), np.float32)
        self.summaries = np.zeros((count, MEMORIES, dimension), np.float32)
        self.available = np.zeros((count, MEMORIES, FORMS), bool)
        self.needed = np.zeros((count, MEMORIES, FORMS), bool)
        row = 0
        while row < count:
            kind = int(rng.integers(QUESTION_KINDS))
            memory_kinds = rng.integers(MEMORY_KINDS, size=MEMORIES)
            available = np.ones((MEMORIES, FORMS), bool)
            available[rng.random(MEMORIES) < 1 / 3, 2:] = False
            available[int(rng.integers(5, MEMORIES + 1)) :] = False
            needed = np.zeros_like(available)
            needed[memory_kinds == kind % MEMORY_KINDS, kind] = True
            needed &= available
            if not needed.any():
                continue
            present = available.any(axis=1)
            self.query[row] = scatter(rng, centres.question[kind])
            self.summaries[row, present] = scatter(rng, centres.memory[memory_kinds[present]])
            self.available[row], self.needed[row] = available, needed
            row += 1

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self.query)

    def split_off(self, count: int) -> ToyQuestions:
        """Remove the last ``count`` questions and return them."""
        rest = copy(self)
        for name in ("query", "summaries", "available", "needed"):
            array = getattr(self, name)
            setattr(self, name, array[:-count])
            setattr(rest, name, array[-count:])
        return rest

    def score(self, rows: NDArray[np.int64], bits: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (answer rewards, rewards) of showing ``bits`` (n, 7, 5) for the questions ``rows``."""
        needed = self.needed[rows]
        assert not (bits & ~self.available[rows]).any(), "the policy set a bit that is not available"
        share = (bits & needed).sum(axis=(1, 2)) / needed.sum(axis=(1, 2))
        answer = np.where(share == 1.0, 1.0, 0.5 * share)
        return answer, answer - BIT_COST * bits.sum(axis=(1, 2))

    def optimum(self) -> float:
        """Return the best possible mean reward: exactly the needed bits, at most seven of them, so the answer is worth its cost."""
        return float(self.score(np.arange(len(self)), self.needed)[1].mean())


class ToyCentres:
    """The centres of the question and memory kinds."""

    def __init__(self, rng: np.random.Generator, *, dimension: int) -> None:
        """Draw unit vectors."""
        self.question = unit(rng.standard_normal((QUESTION_KINDS, dimension)))
        self.memory = unit(rng.standard_normal((MEMORY_KINDS, dimension)))


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the vectors (..., d) at length 1."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def scatter(rng: np.random.Generator, centres: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return unit vectors around unit ``centres``: centre plus as much isotropic noise, normalised."""
    return unit(centres + unit(rng.standard_normal(centres.shape))).astype(np.float32)


class ToyVecEnv(VecEnv):
    """Sixteen one-step questions at a time, in seeded permutations joined end to end."""

    def __init__(self, questions: ToyQuestions, *, seed: int, num_envs: int = 16) -> None:
        """Wrap ``questions``; ``seed`` orders them."""
        dimension = questions.query.shape[1]
        observation_space = spaces.Dict(
            {
                "query": spaces.Box(-1, 1, (dimension,), np.float32),
                "summaries": spaces.Box(-1, 1, (MEMORIES * dimension,), np.float32),
                "available": spaces.MultiBinary((MEMORIES, FORMS)),
                "token_costs": spaces.Box(0, 1e6, (MEMORIES * FORMS,), np.float32),
            }
        )
        super().__init__(num_envs, observation_space, spaces.MultiBinary(MEMORIES * FORMS))
        self.questions = questions
        self.rng = np.random.default_rng(seed)
        self.order: list[int] = []
        self.answered = 0
        self.fail_at_step: int | None = None
        self.steps = 0
        self.rows = np.zeros(num_envs, np.int64)

    def draw(self) -> dict[str, NDArray[Any]]:
        """Take the next questions and return their observations."""
        while len(self.order) < self.num_envs:
            self.order += [int(row) for row in self.rng.permutation(len(self.questions))]
        self.rows = np.array(self.order[: self.num_envs])
        del self.order[: self.num_envs]
        return {
            "query": self.questions.query[self.rows],
            "summaries": self.questions.summaries[self.rows].reshape(self.num_envs, -1),
            "available": self.questions.available[self.rows].astype(np.int8),
            "token_costs": np.full((self.num_envs, MEMORIES * FORMS), 100, np.float32),
        }

    def reset(self) -> dict[str, NDArray[Any]]:
        """Start the first questions."""
        return self.draw()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions."""
        self.actions = actions

    def step_wait(self) -> tuple[dict[str, NDArray[Any]], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Score the compositions and move on to the next questions."""
        self.steps += 1
        if self.steps == self.fail_at_step:
            self.draw()  # A failure in the middle of a step: the sampler has already moved.
            raise ConnectionError("the answering model does not respond")
        bits = self.actions.reshape(self.num_envs, MEMORIES, FORMS) > 0.5
        answer, reward = self.questions.score(self.rows, bits)
        infos = [{"answer_reward": float(a), "shown": float(n)} for a, n in zip(answer, bits.sum(axis=(1, 2)), strict=True)]
        self.answered += self.num_envs
        return self.draw(), reward.astype(np.float32), np.ones(self.num_envs, bool), infos

    def epochs_complete(self) -> int:
        """Return how often every question has been answered."""
        return self.answered // len(self.questions)

    def state_dict(self) -> dict[str, Any]:
        """Return the sampler's state as a JSON document."""
        return {
            "rng": self.rng.bit_generator.state,
            "order": list(self.order),
            "rows": [int(row) for row in self.rows],
            "answered": self.answered,
            "steps": self.steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.rng.bit_generator.state = state["rng"]
        self.order = list(state["order"])
        self.rows = np.array(state["rows"], np.int64)
        self.answered = state["answered"]
        self.steps = state["steps"]

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Do nothing: the order's seed is the constructor's."""
        return [None] * self.num_envs

    def close(self) -> None:
        """Do nothing."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return the attribute once per environment."""
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: there are no separate environments."""
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Refuse: there are no separate environments."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return that nothing is wrapped."""
        return [False] * self.num_envs
