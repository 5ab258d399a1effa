"""`EvidenceGym/EvidenceSelection-v0`: choose the evidence forms of each retrieved memory, once per question.

Implements HiVe-Mem §3.3 as a one-step environment; `envs.batched` is the same task for a batch of questions.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from numpy.typing import NDArray

from envs.answering import Answerer, Outcome
from envs.questions import Observation, PreparedQuestion
from envs.reward import RewardNormaliser, RewardTerms

MAX_FORM_TOKENS = 1_000_000
"""Bound of the ``token_costs`` observation; no rendered form comes near it."""


def observation_space(questions: Sequence[PreparedQuestion]) -> spaces.Dict:
    """The observation space that fits the prepared questions."""
    n_memories, dimension = questions[0].summaries.shape
    n_forms = questions[0].available.shape[1]
    return spaces.Dict(
        {
            "query": spaces.Box(-1.001, 1.001, (dimension,), np.float32),
            "summaries": spaces.Box(-1.001, 1.001, (n_memories * dimension,), np.float32),
            "available": spaces.MultiBinary((n_memories, n_forms)),
            "token_costs": spaces.Box(0, MAX_FORM_TOKENS, (n_memories * n_forms,), np.float32),
        }
    )


def action_space(questions: Sequence[PreparedQuestion]) -> spaces.MultiBinary:
    """One bit for each (memory, form), memory by memory."""
    return spaces.MultiBinary(questions[0].available.size)


def reward_info(question: PreparedQuestion, outcome: Outcome, terms: RewardTerms, row: int) -> dict[str, Any]:
    """Every term of one reward (Eq. 6–9) by name, with what identifies the call; no arrays, no prompts."""
    return {
        "question_id": question.question.id,
        "request_key": outcome.request_key,
        "answer_reward": float(terms.answer_reward[row]),
        "evidence_tokens": float(terms.cost[row]),
        "normalised_cost": float(terms.normalised_cost[row]),
        "cost_scale": float(terms.alpha),
        "scaled_cost": float(terms.scaled_cost[row]),
        "reward": float(terms.reward[row]),
        "recall": outcome.recall,
    }


class EvidenceSelectionEnv(gymnasium.Env[Observation, NDArray[np.int8]]):
    """One question per rollout; the action composes the evidence shown for each of K retrieved memories.

    Description:
        A question was retrieved for: up to K memory episodes (5 seeds and 2 affinity-graph neighbours by default),
        each with up to F evidence forms. The action's chosen forms are rendered, the answer model is asked once,
        and its answer is scored against the gold answer.

    Action Space:
        ``MultiBinary(K * F)``: bit ``k * F + f`` shows form ``f`` of memory ``k``. Bits of forms that a memory does
        not have are ignored.

    Observation Space:
        ``Dict`` of

        =============  =====================  ======  =========  ==============================================
        name           shape                  min     max        meaning
        =============  =====================  ======  =========  ==============================================
        query          (d,) float32           -1.001  1.001      unit embedding of the question
        summaries      (K * d,) float32       -1.001  1.001      unit embeddings of the summaries, row by row;
                                                                 zero where fewer than K memories were found
        available      (K, F) int8            0       1          1 where the memory has the form
        token_costs    (K * F,) float32       0       1,000,000  tokens of each form as rendered (for ablations)
        =============  =====================  ======  =========  ==============================================

    Rewards:
        ``R = F1 - cost_weight * alpha * C_hat`` (Eq. 6–9); every term is in ``info``.

    Starting State:
        A question of a seeded permutation of the question set; ``options={"question": i}`` chooses one.

    Episode End:
        After one step (``terminated``). A further step raises ``ResetNeeded``.

    Arguments:
        questions: the prepared questions; answerer: asks and scores; normaliser: the reward windows;
        cost_weight: λ.

    Version History:
        v0: first version.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own attribute

    def __init__(
        self, questions: Sequence[PreparedQuestion], *, answerer: Answerer, normaliser: RewardNormaliser, cost_weight: float
    ) -> None:
        self.observation_space: spaces.Dict = observation_space(questions)  # type: ignore[assignment]  # Gymnasium types it by observation
        self.action_space = action_space(questions)
        self._questions = questions
        self._answerer = answerer
        self._normaliser = normaliser
        self._cost_weight = cost_weight
        self._order: list[int] = []
        self._current: PreparedQuestion | None = None
        self._initial_windows = normaliser.state_dict()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start a rollout on the next question, or on number ``options["question"]``.

        A seed starts everything over, the reward windows included, so that equal seeds give equal rollouts.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._order = []
            self._normaliser.load_state_dict(self._initial_windows)
        if options and "question" in options:
            number = int(options["question"])
            if not 0 <= number < len(self._questions):
                raise InvalidAction(f"options['question'] must be from 0 to {len(self._questions) - 1}, got {number}")
        else:
            if not self._order:
                self._order = self.np_random.permutation(len(self._questions)).tolist()
            number = self._order.pop()
        self._current = self._questions[number]
        return self._current.observation(), {"question_id": self._current.question.id}

    def step(self, action: NDArray[np.int8]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Show the chosen evidence, ask, and score.

        Raises:
            gymnasium.error.ResetNeeded: the rollout is over.
            models.errors.BackendError: no answer could be had; it never becomes a reward of 0.
        """
        if self._current is None:
            raise ResetNeeded("the rollout is over after one step: call reset() before step()")
        chosen = np.asarray(action)
        if chosen.shape != self.action_space.shape or not np.isin(chosen, (0, 1)).all():
            raise InvalidAction(f"the action must be {self.action_space.shape} zeros and ones, got shape {chosen.shape}: {action!r}")
        question, self._current = self._current, None
        composition = chosen.astype(np.bool_).reshape(1, *question.available.shape)
        outcome = self._answerer.answer([question], composition)[0]
        terms = self._normaliser.rewards(np.array([outcome.f1]), np.array([float(outcome.evidence.total)]), cost_weight=self._cost_weight)
        return question.observation(), float(terms.reward[0]), True, False, reward_info(question, outcome, terms, 0)
