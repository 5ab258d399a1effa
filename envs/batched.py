"""The batched form of `envs.selection`: an SB3 ``VecEnv`` in which one step asks one batch of requests.

Sixteen questions cost one round trip instead of sixteen. It is a ``VecEnv`` because SB3 does not take Gymnasium's
vector environments.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from envs.answering import Answerer
from envs.question_stream import QuestionStream
from envs.questions import Observation, PreparedQuestion
from envs.reward import CostRange, FrozenReward, RewardNormaliser
from envs.selection import action_space, observation_space, reward_info
from envs.vectorised import SharedVecEnv
from policies.checkpoint import preserved_randomness


class BatchedSelectionEnv(SharedVecEnv):
    """``n_envs`` one-step rollouts at a time, over every question once per epoch.

    Observations are those of `EvidenceSelectionEnv`, stacked: ``query`` (B, d), ``summaries`` (B, K * d),
    ``available`` (B, K, F), ``token_costs`` (B, K * F). ``n_answered`` counts finished rollouts.
    ``validation_reward`` is the reward that checkpoints compete by, fixed when the first epoch ends (None before).
    """

    def __init__(
        self,
        questions: Sequence[PreparedQuestion],
        *,
        answerer: Answerer,
        normaliser: RewardNormaliser,
        cost_weight: float,
        n_envs: int,
        seed: int,
    ) -> None:
        super().__init__(n_envs, observation_space(questions), action_space(questions))
        self.normaliser = normaliser
        self.n_answered = 0
        self.validation_reward: FrozenReward | None = None
        self._questions = questions
        self._answerer = answerer
        self._cost_weight = cost_weight
        self._stream = QuestionStream(len(questions), seed=seed)
        self._current = np.zeros(0, np.int64)
        self._actions: NDArray[np.bool_] | None = None

    @property
    def n_epochs_done(self) -> int:
        """How often every question has been answered."""
        return self.n_answered // len(self._questions)

    def reset(self) -> VecEnvObs:
        """Draw the next ``n_envs`` questions."""
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return self._draw()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions: (B, K * F), non-zero where a form is shown."""
        self._actions = np.asarray(actions, np.bool_)

    def step_wait(self) -> VecEnvStepReturn:
        """Ask one batch, score it, and draw the next questions.

        Returns:
            Observations of the next questions, rewards (B,) float32, dones (B,) all True, and the infos of
            `envs.selection.reward_info` with SB3's ``episode`` entry.
        """
        if self._actions is None or not len(self._current):
            raise RuntimeError("step_wait() needs reset() and step_async() before it")
        questions = [self._questions[number] for number in self._current.tolist()]
        compositions = self._actions.reshape(len(questions), *questions[0].available.shape)
        self._actions = None
        with preserved_randomness():  # a model that is loaded for the first new picture draws its initial weights
            outcomes = self._answerer.answer(questions, compositions)
        scores = np.array([outcome.f1 for outcome in outcomes])
        costs = np.array([float(outcome.evidence.total) for outcome in outcomes])
        terms = self.normaliser.rewards(scores, costs, cost_weight=self._cost_weight)
        infos = [
            reward_info(question, outcome, terms, row) for row, (question, outcome) in enumerate(zip(questions, outcomes, strict=True))
        ]
        for info in infos:
            info["episode"] = {"r": info["reward"], "l": 1, "t": 0.0}
        self.n_answered += len(questions)
        if self.validation_reward is None and self.n_epochs_done >= 1:
            self.validation_reward = self.normaliser.frozen()
        return self._draw(), terms.reward.astype(np.float32), np.ones(len(questions), np.bool_), infos

    def _draw(self) -> VecEnvObs:
        self._current = self._stream.draw(self.num_envs)
        return self._observations()

    def _observations(self) -> VecEnvObs:
        rows: list[Observation] = [self._questions[number].observation() for number in self._current.tolist()]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def state_dict(self) -> dict[str, Any]:
        """Everything that a later `load_state_dict` needs to continue exactly; JSON-able."""
        return {
            "n_answered": self.n_answered,
            "n_drawn": self._stream.n_drawn,
            "current": self._current.tolist(),
            "n_questions": len(self._questions),
            "normaliser": self.normaliser.state_dict(),
            "validation_reward": None if self.validation_reward is None else asdict(self.validation_reward),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict` of an environment over the same questions.

        Raises:
            ValueError: the state is of another question set.
        """
        if state["n_questions"] != len(self._questions):
            raise ValueError(f"the saved state is of {state['n_questions']} questions, this split has {len(self._questions)}")
        self.n_answered = state["n_answered"]
        self._stream.n_drawn = state["n_drawn"]
        self._current = np.array(state["current"], np.int64)
        self.normaliser.load_state_dict(state["normaliser"])
        frozen = state["validation_reward"]
        self.validation_reward = None if frozen is None else FrozenReward(CostRange(**frozen["range"]), frozen["alpha"])
