"""The batched form of `envs.selection`: an SB3 ``VecEnv`` in which one step asks one batch of requests.

Sixteen questions cost one round trip instead of sixteen. It is a ``VecEnv`` because SB3 does not take Gymnasium's
vector environments.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from envs.answering import Answerer
from envs.questions import Observation, PreparedQuestion
from envs.reward import RewardNormaliser
from envs.selection import action_space, observation_space, reward_info
from envs.vectorised import QuestionVecEnv
from policies.checkpoint import preserved_randomness


class BatchedSelectionEnv(QuestionVecEnv):
    """``n_envs`` one-step rollouts at a time, over every question once per epoch.

    Observations are those of `EvidenceSelectionEnv`, stacked: ``query`` (B, d), ``summaries`` (B, K * d),
    ``available`` (B, K, F), ``token_costs`` (B, K * F).
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
        spaces = observation_space(questions), action_space(questions)
        super().__init__(*spaces, n_envs=n_envs, n_questions=len(questions), normaliser=normaliser, seed=seed)
        self._questions = questions
        self._answerer = answerer
        self._cost_weight = cost_weight
        self._current = np.zeros(0, np.int64)
        self._actions: NDArray[np.bool_] | None = None

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
        self.count_answers(len(questions))
        return self._draw(), terms.reward.astype(np.float32), np.ones(len(questions), np.bool_), infos

    def _draw(self) -> VecEnvObs:
        self._current = self.stream.draw(self.num_envs)
        return self._observations()

    def _observations(self) -> VecEnvObs:
        rows: list[Observation] = [self._questions[number].observation() for number in self._current.tolist()]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def state_dict(self) -> dict[str, Any]:
        """See `QuestionVecEnv`; the rows are the numbers of their questions."""
        return super().state_dict() | {"current": self._current.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `QuestionVecEnv`."""
        super().load_state_dict(state)
        self._current = np.array(state["current"], np.int64)
