"""The batched form of `envs.planning`: an SB3 ``VecEnv`` in which all rollouts that wait for the model share a batch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from envs.planned import PlanAnswerer, PlannedQuestion
from envs.planning import PlanningRollout, planning_info, planning_spaces, stacked_observations
from envs.reward import RewardNormaliser
from envs.vectorised import QuestionVecEnv
from models.requests import Reply, Request
from planners.execution import MAX_STEPS, run_together
from policies.checkpoint import preserved_randomness


class BatchedPlanningEnv(QuestionVecEnv):
    """``n_envs`` planning rollouts side by side, over every question once per epoch.

    Observations are those of `ToolPlanningEnv`, stacked.
    """

    def __init__(
        self,
        questions: Sequence[PlannedQuestion],
        *,
        candidates: NDArray[np.float32],
        answerer: PlanAnswerer,
        generate: Callable[[Sequence[Request]], list[Reply]],
        normaliser: RewardNormaliser,
        cost_weight: float,
        n_envs: int,
        seed: int,
    ) -> None:
        """Prepare; ``candidates``: (n, 10, d) float32, the questions' slots."""
        spaces = planning_spaces(candidates.shape[2])
        super().__init__(*spaces, n_envs=n_envs, n_questions=len(questions), normaliser=normaliser, seed=seed)
        self._questions = questions
        self._candidates = candidates
        self._answerer = answerer
        self._generate = generate
        self._cost_weight = cost_weight
        self._rollouts: list[PlanningRollout] = []
        self._numbers: list[int] = []
        self._actions: list[int] = []

    def reset(self) -> VecEnvObs:
        """Start a question in every row."""
        self.reset_infos = [{} for _ in range(self.num_envs)]
        self._rollouts, self._numbers = [], []
        for number in self.stream.draw(self.num_envs).tolist():
            self._numbers.append(number)
            self._rollouts.append(self._start(number))
        return self._observations()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions: (B,) integers from 0 to 24."""
        self._actions = [int(action) for action in np.asarray(actions).reshape(-1)]

    def step_wait(self) -> VecEnvStepReturn:
        """Run every row's tool or answer, a batch of requests a round trip; rows that ended start their next question."""
        if not self._actions or not self._rollouts:
            raise RuntimeError("step_wait() needs reset() and step_async() before it")
        with preserved_randomness():  # a model that is loaded for the first new picture draws its initial weights
            askings = [rollout.act(action, self._answerer) for rollout, action in zip(self._rollouts, self._actions, strict=True)]
            outcomes = run_together(askings, self._generate)
        self._actions = []
        ended = [row for row, outcome in enumerate(outcomes) if outcome is not None]
        rewards = np.zeros(self.num_envs, np.float32)
        infos: list[dict[str, Any]] = [{"question_id": rollout.planned.question.id} for rollout in self._rollouts]
        if ended:
            found = [outcome for outcome in outcomes if outcome is not None]
            scores, costs = np.array([one.f1 for one in found]), np.array([float(one.total_tokens) for one in found])
            terms = self.normaliser.rewards(scores, costs, cost_weight=self._cost_weight)
            for place, (row, outcome) in enumerate(zip(ended, found, strict=True)):
                rewards[row] = terms.reward[place]
                infos[row] = planning_info(self._rollouts[row], outcome, terms, place)
                length = len(self._rollouts[row].actions)
                infos[row]["episode"] = {"r": infos[row]["reward"], "l": max(length, 1), "t": 0.0}
                infos[row]["terminal_observation"] = self._rollouts[row].observation()
            self.count_answers(len(ended))
            for row, number in zip(ended, self.stream.draw(len(ended)).tolist(), strict=True):
                self._numbers[row] = number
                self._rollouts[row] = self._start(number)
        dones = np.zeros(self.num_envs, np.bool_)
        dones[ended] = True
        return self._observations(), rewards, dones, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """The allowed actions of every row, (B, 25) bool."""
        return np.stack([rollout.mask() for rollout in self._rollouts])

    def row_method(self, name: str, row: int) -> Any:
        """What a method gives for one row: masked PPO asks each row for its ``action_masks``."""
        return self._rollouts[row].mask() if name == "action_masks" else getattr(self, name)()

    def _start(self, number: int) -> PlanningRollout:
        return PlanningRollout(self._questions[number], candidates=self._candidates[number])

    def _observations(self) -> VecEnvObs:
        return stacked_observations(self._rollouts)

    def state_dict(self) -> dict[str, Any]:
        """See `QuestionVecEnv`.

        A rollout is kept as its question and actions: running them again asks nothing that is not in the call cache.
        """
        rows = [[number, list(rollout.actions)] for number, rollout in zip(self._numbers, self._rollouts, strict=True)]
        return super().state_dict() | {"rollouts": rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `QuestionVecEnv`."""
        super().load_state_dict(state)
        self._numbers = [number for number, _ in state["rollouts"]]
        self._rollouts = [self._start(number) for number in self._numbers]
        for place in range(MAX_STEPS):
            acting = [
                (rollout, actions[place])
                for rollout, (_, actions) in zip(self._rollouts, state["rollouts"], strict=True)
                if place < len(actions)
            ]
            run_together([rollout.act(action, self._answerer) for rollout, action in acting], self._generate)
