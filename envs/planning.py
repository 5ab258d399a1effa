"""`EvidenceGym/ToolPlanning-v0`: choose which tool reads which table or level of memory, up to three times, then answer.

`PlanningRollout` is one question's progress; `envs.planning_batched` drives many of them at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction, ResetNeeded
from numpy.typing import NDArray

from envs.planned import PlanAnswerer, PlannedOutcome, PlannedQuestion
from envs.reward import RewardNormaliser, RewardTerms
from memory.adamm.tools.arguments import ANALYTIC_TOOLS
from models.requests import Reply, Request
from models.tasks.planning import AbstractStep
from planners.execution import BUDGET, MAX_STEPS, Asking, Execution, run_step, run_together

TABLE_SLOTS, EPISODE_SLOTS = 5, 5
SCOPES = ("topic", "episode", "event")
N_TABLE_ACTIONS = len(ANALYTIC_TOOLS) * TABLE_SLOTS
LOCATE = N_TABLE_ACTIONS + len(SCOPES)
STOP = LOCATE + 1
N_ACTIONS = STOP + 1
_OUTCOMES = 4
"""Of each step: units used, whether it failed, whether it found nothing, whether it read a table."""
_SCORE_BOUND = 2.0

Observation = dict[str, NDArray[np.float32] | NDArray[np.int8]]


def planning_spaces(dimension: int) -> tuple[spaces.Dict, spaces.Discrete]:
    """The observation and action spaces for embeddings of length d."""
    slots = TABLE_SLOTS + EPISODE_SLOTS
    observation = spaces.Dict(
        {
            "query": spaces.Box(-1.001, 1.001, (dimension,), np.float32),
            "candidates": spaces.Box(-1.001, 1.001, (slots * dimension,), np.float32),
            "scores": spaces.Box(-_SCORE_BOUND, _SCORE_BOUND, (slots,), np.float32),
            "present": spaces.MultiBinary(slots),
            "executed": spaces.Box(0, 1, (MAX_STEPS * N_ACTIONS,), np.float32),
            "outcomes": spaces.Box(0, 1, (MAX_STEPS * _OUTCOMES,), np.float32),
            "budget": spaces.Box(0, 1, (2,), np.float32),
            "action_mask": spaces.MultiBinary(N_ACTIONS),
        }
    )
    return observation, spaces.Discrete(N_ACTIONS)


ACTION_NAMES = (
    *(f"{tool} {slot}" for tool in ANALYTIC_TOOLS for slot in range(TABLE_SLOTS)),
    *(f"SemanticMatch {scope}" for scope in SCOPES),
    "EventLocate",
    "stop",
)
"""What each action stands for; a number is a table's slot in the planning context."""


def action_name(action: int, planned: PlannedQuestion) -> str:
    """An action as people read it."""
    if action == STOP:
        return "stop"
    tool, fixed = tool_of(action, planned)
    return f"{tool} {' '.join(fixed.values())}".strip()


def tool_of(action: int, planned: PlannedQuestion) -> tuple[str, dict[str, str]]:
    """The tool of an action that is not `STOP`, and the argument that it decides."""
    if action == LOCATE:
        return "EventLocate", {}
    if action >= N_TABLE_ACTIONS:
        return "SemanticMatch", {"retrieval_scope": SCOPES[action - N_TABLE_ACTIONS]}
    tool, slot = divmod(action, TABLE_SLOTS)
    return ANALYTIC_TOOLS[tool], {"table": planned.context.shown.tables[slot].name}


class PlanningRollout:
    """The progress of one question under a planner's actions."""

    def __init__(self, planned: PlannedQuestion, *, candidates: NDArray[np.float32]) -> None:
        """Start without steps; ``candidates``: (10, d) float32, the slots' embeddings, zero where empty."""
        self.planned = planned
        self.execution = Execution()
        self.actions: list[int] = []
        self._candidates = candidates

    def mask(self) -> NDArray[np.bool_]:
        """Which actions are allowed: (25,) bool; stopping always is."""
        allowed = np.zeros(N_ACTIONS, np.bool_)
        allowed[STOP] = True
        if len(self.actions) < MAX_STEPS and self.execution.units_left >= 1:
            offered = {tool.name for tool in self.planned.context.shown.tools}
            n_tables = len(self.planned.context.tables[:TABLE_SLOTS])
            for action in range(STOP):
                if action < N_TABLE_ACTIONS:
                    tool, slot = divmod(action, TABLE_SLOTS)
                    allowed[action] = slot < n_tables and ANALYTIC_TOOLS[tool] in offered
                else:
                    allowed[action] = ("EventLocate" if action == LOCATE else "SemanticMatch") in offered
        return allowed

    def observation(self) -> Observation:
        """A new observation in `planning_spaces`."""
        context = self.planned.context
        scores = np.zeros(TABLE_SLOTS + EPISODE_SLOTS, np.float32)
        present = np.zeros(TABLE_SLOTS + EPISODE_SLOTS, np.int8)
        for start, found in ((0, context.table_scores[:TABLE_SLOTS]), (TABLE_SLOTS, context.episode_scores[:EPISODE_SLOTS])):
            scores[start : start + len(found)] = np.clip(found, -_SCORE_BOUND, _SCORE_BOUND)
            present[start : start + len(found)] = 1
        executed = np.zeros((MAX_STEPS, N_ACTIONS), np.float32)
        outcomes = np.zeros((MAX_STEPS, _OUTCOMES), np.float32)
        for place, (action, step) in enumerate(zip(self.actions, self.execution.steps, strict=True)):
            executed[place, action] = 1
            failed = step.result is None
            outcomes[place] = (step.n_units / BUDGET, failed, not failed and not step.n_units, step.step.tool in ANALYTIC_TOOLS)
        budget = np.array([self.execution.units_left / BUDGET, (MAX_STEPS - len(self.actions)) / MAX_STEPS], np.float32)
        return {
            "query": np.array(self.planned.query, np.float32),
            "candidates": self._candidates.reshape(-1).copy(),
            "scores": scores,
            "present": present,
            "executed": executed.reshape(-1),
            "outcomes": outcomes.reshape(-1),
            "budget": budget,
            "action_mask": self.mask().astype(np.int8),
        }

    def act(self, action: int, answerer: PlanAnswerer) -> Asking[PlannedOutcome | None]:
        """Take one action; the outcome is there once the rollout ends: by stopping, after three steps, or without units left.

        An action that the mask does not allow stops.
        """
        if action != STOP and self.mask()[action]:
            tool, fixed = tool_of(action, self.planned)
            step = AbstractStep(self.planned.question.text, tool)
            self.execution.plan = (*self.execution.plan, step)
            n_later = MAX_STEPS - len(self.actions) - 1
            allowance = max(1, self.execution.units_left - n_later)
            yield from run_step(self.planned.subject, self.execution, len(self.actions), allowance=allowance, fixed=fixed)
            self.actions.append(action)
            if len(self.actions) < MAX_STEPS and self.execution.units_left >= 1:
                return None
        return (yield from answerer.answer(self.planned, self.execution))


def stacked_observations(rollouts: Sequence[PlanningRollout]) -> dict[str, NDArray[Any]]:
    """The observations of B rollouts, by name, each (B, ...)."""
    rows = [rollout.observation() for rollout in rollouts]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def slot_embeddings(planned: PlannedQuestion, tables: NDArray[np.float32], episodes: NDArray[np.float32]) -> NDArray[np.float32]:
    """The embeddings of a question's slots, (10, d) float32; ``tables`` (n, d) and ``episodes`` (m, d) are those of its memory."""
    slots = np.zeros((TABLE_SLOTS + EPISODE_SLOTS, len(planned.query)), np.float32)
    for start, found, vectors in (
        (0, planned.context.tables[:TABLE_SLOTS], tables),
        (TABLE_SLOTS, planned.context.episodes[:EPISODE_SLOTS], episodes),
    ):
        if found:
            slots[start : start + len(found)] = vectors[list(found)]
    return slots


def planning_info(rollout: PlanningRollout, outcome: PlannedOutcome, terms: RewardTerms, row: int) -> dict[str, Any]:
    """Every term of a finished rollout's reward by name, with what identifies it; no arrays, no prompts."""
    return {
        "question_id": rollout.planned.question.id,
        "request_key": outcome.request_key,
        "plan": [action_name(action, rollout.planned) for action in rollout.actions],
        "answer_reward": float(terms.answer_reward[row]),
        "tokens_per_question": float(terms.cost[row]),
        "evidence_tokens": float(outcome.evidence_tokens),
        "normalised_cost": float(terms.normalised_cost[row]),
        "cost_scale": float(terms.alpha),
        "scaled_cost": float(terms.scaled_cost[row]),
        "reward": float(terms.reward[row]),
        "recall": outcome.recall,
    }


class ToolPlanningEnv(gymnasium.Env[Observation, np.int64]):
    """One question per rollout, up to three tool calls, then one answer.

    Description:
        A question comes with its planning context: the tables and episodes of its memory that rank highest by Eq. 9. Each action runs
        one tool, whose remaining arguments the instantiating model binds; what it returns is evidence for the answer, ten units at most,
        of which a step leaves one to each step that may follow.

    Action Space:
        ``Discrete(25)``: ``tool * 5 + slot`` for Lookup, Filter, Compute, Rank over five table slots; 20 to 22 SemanticMatch over topics,
        episodes, events; 23 EventLocate; 24 stop. ``action_masks()`` and the observation's ``action_mask`` say which are allowed; another
        one stops.

    Observation Space:
        ``Dict`` of

        ===========  ==================  ======  =====  ====================================================================
        name         shape               min     max    meaning
        ===========  ==================  ======  =====  ====================================================================
        query        (d,) float32        -1.001  1.001  unit embedding of the question
        candidates   (10 * d,) float32   -1.001  1.001  unit embeddings of five table and five episode slots, zero if empty
        scores       (10,) float32       -2      2      h of Eq. 9
        present      (10,) int8          0       1      filled slots
        executed     (75,) float32       0       1      one-hot of the action of each step so far
        outcomes     (12,) float32       0       1      by step: units / 10, failed, found nothing, read a table
        budget       (2,) float32        0       1      units left / 10, steps left / 3
        action_mask  (25,) int8          0       1      allowed actions
        ===========  ==================  ======  =====  ====================================================================

    Rewards:
        0 until the end, then ``R = F1 - cost_weight * alpha * C_hat`` (HiVe-Mem, Eq. 6-9) over all tokens of the question's calls.

    Starting State:
        A question of a seeded permutation of the question set; ``options={"question": i}`` chooses one.

    Episode End:
        On stop, after three tools, or when no evidence units are left (``terminated``). A further step raises ``ResetNeeded``.

    Arguments:
        questions: the planned questions; candidates: (n, 10, d) float32, their slots' embeddings; answerer: asks and scores; generate:
        the door; normaliser: the reward windows; cost_weight: λ.

    Version History:
        v0: first version.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's convention

    def __init__(
        self,
        questions: Sequence[PlannedQuestion],
        *,
        candidates: NDArray[np.float32],
        answerer: PlanAnswerer,
        generate: Callable[[Sequence[Request]], list[Reply]],
        normaliser: RewardNormaliser,
        cost_weight: float,
    ) -> None:
        observation_space, action_space = planning_spaces(candidates.shape[2])
        self.observation_space: spaces.Dict = observation_space  # type: ignore[assignment]  # Gymnasium types the observation's arrays
        self.action_space: spaces.Discrete = action_space
        self._questions = questions
        self._candidates = candidates
        self._answerer = answerer
        self._generate = generate
        self._normaliser = normaliser
        self._cost_weight = cost_weight
        self._initial_windows = normaliser.state_dict()
        self._order: list[int] = []
        self._rollout: PlanningRollout | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        """Start the next question."""
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
        self._rollout = PlanningRollout(self._questions[number], candidates=self._candidates[number])
        return self._rollout.observation(), {"question_id": self._rollout.planned.question.id}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Run one tool, or stop and answer.

        Raises:
            gymnasium.error.ResetNeeded: the rollout is over.
            models.errors.BackendError: no reply could be had; it never becomes a reward of 0.
        """
        if self._rollout is None:
            raise ResetNeeded("the rollout has ended or not begun; call reset()")
        if not self.action_space.contains(action):
            raise InvalidAction(f"{action!r} is not an integer from 0 to {N_ACTIONS - 1}")
        rollout = self._rollout
        (outcome,) = run_together([rollout.act(int(action), self._answerer)], self._generate)
        observation = rollout.observation()
        if outcome is None:
            return observation, 0.0, False, False, {"question_id": rollout.planned.question.id}
        scores, costs = np.array([outcome.f1]), np.array([float(outcome.total_tokens)])
        terms = self._normaliser.rewards(scores, costs, cost_weight=self._cost_weight)
        self._rollout = None
        return observation, float(terms.reward[0]), True, False, planning_info(rollout, outcome, terms, 0)

    def action_masks(self) -> NDArray[np.bool_]:
        """The allowed actions, (25,) bool, as masked PPO asks for them."""
        if self._rollout is None:
            raise ResetNeeded("the rollout has ended or not begun; call reset()")
        return self._rollout.mask()
