"""Training of the learned planner, as `envs.training` trains the selector; and what it achieves."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO
from stable_baselines3.common.policies import BasePolicy

from data.history import Question
from data.splits import without_refusals
from envs.pipelines import Pipeline, prepare_planned
from envs.planned import PlanAnswerer, PlannedOutcome, PlannedQuestion
from envs.planning import TABLE_SLOTS, PlanningRollout, ToolPlanningEnv, slot_embeddings, stacked_observations
from envs.planning_batched import BatchedPlanningEnv
from envs.reward import RewardNormaliser
from envs.settings import PlanningEnv, Settings
from envs.training import Training, ready_training
from envs.workbench import Workbench, one_history_settings, open_workbench
from memory.adamm.tools.arguments import ANALYTIC_TOOLS
from models.requests import Reply, Request
from planners.composers import Composer, uniform_composers
from planners.execution import MAX_STEPS, run_together
from policies.callbacks import ValidationResult
from policies.inference import Selector
from policies.planner import PlannerPolicy
from policies.training import build_masked_ppo, count_rollouts

TERMS = ("answer_reward", "tokens_per_question", "evidence_tokens", "normalised_cost", "cost_scale", "scaled_cost")
_BATCH = 64

Choose = Callable[[Sequence[PlanningRollout]], list[int]]
logger = logging.getLogger(__name__)


class PlanningQuestions:
    """Planned questions with the embeddings of their slots, and what answers them."""

    def __init__(self, workbench: Workbench, questions: Sequence[Question]) -> None:
        """Prepare questions in the pipeline that the settings name."""
        settings = workbench.settings.env
        assert isinstance(settings, PlanningEnv)
        composer = composer_named(settings.composer, workbench) if settings.pipeline == "joint" else None
        self.planned = prepare_planned(workbench, questions, Pipeline(name=settings.pipeline), composer=composer)
        self.candidates = np.stack([_slots(item, workbench) for item in self.planned])
        self.answerer = PlanAnswerer(counter=workbench.door.backend.counter, metric=workbench.answerer.metric)
        self.generate: Callable[[Sequence[Request]], list[Reply]] = workbench.door.generate

    def steer(self, choose: Choose, *, places: Sequence[int] | None = None) -> list[tuple[PlanningRollout, PlannedOutcome]]:
        """Answer questions (all, or those at ``places``) with actions that ``choose`` takes for many rollouts at once."""
        numbers = range(len(self.planned)) if places is None else places
        rollouts = [PlanningRollout(self.planned[number], candidates=self.candidates[number]) for number in numbers]
        outcomes: dict[int, PlannedOutcome] = {}
        for start in range(0, len(rollouts), _BATCH):
            active = list(range(start, min(start + _BATCH, len(rollouts))))
            while active:
                actions = choose([rollouts[place] for place in active])
                askings = [rollouts[place].act(action, self.answerer) for place, action in zip(active, actions, strict=True)]
                results = run_together(askings, self.generate)
                outcomes |= {place: found for place, found in zip(active, results, strict=True) if found is not None}
                active = [place for place, found in zip(active, results, strict=True) if found is None]
        return [(rollout, outcomes[place]) for place, rollout in enumerate(rollouts)]


def policy_choice(policy: PlannerPolicy) -> Choose:
    """The policy's most probable allowed actions."""

    def choose(rollouts: Sequence[PlanningRollout]) -> list[int]:
        observation = stacked_observations(rollouts)
        actions, _ = policy.predict(observation, deterministic=True, action_masks=observation["action_mask"].astype(np.bool_))
        return [int(action) for action in np.asarray(actions).reshape(-1)]

    return choose


def random_choice(rng: np.random.Generator) -> Choose:
    """Any allowed action."""
    return lambda rollouts: [int(rng.choice(np.flatnonzero(rollout.mask()))) for rollout in rollouts]


def composer_named(name: str, workbench: Workbench) -> Composer:
    """A fixed composition by its forms (``all-forms``, ``summary+view``), or the exported selector in a folder."""
    forms = list(workbench.answerer.forms)
    uniforms = uniform_composers(forms)
    uniforms["all-forms"] = uniforms["+".join(forms)]
    return uniforms[name] if name in uniforms else Selector.load(Path(name), encoder_id=workbench.encoder.id)


def open_planning_training(workbench: Workbench, folder: Path) -> Training:
    """Build the environment and masked PPO; an interrupted run in ``folder`` continues exactly where it was (``resume=true``).

    Raises:
        policies.errors.CheckpointError: the checkpoint in ``folder`` is of other settings.
    """
    settings = workbench.settings
    environment_settings = settings.env
    assert isinstance(environment_settings, PlanningEnv)
    parts = workbench.split.questions(workbench.dataset)
    refusals = workbench.dataset.refusal_categories
    kept = parts["train"] if settings.data.train_refusals else without_refusals(parts["train"], refusals)
    training = PlanningQuestions(workbench, kept)
    validation = PlanningQuestions(workbench, without_refusals(parts["validation"], refusals))
    environment = BatchedPlanningEnv(
        training.planned,
        candidates=training.candidates,
        answerer=training.answerer,
        generate=training.generate,
        normaliser=_normaliser(workbench, training, environment_settings.n_prefill),
        cost_weight=settings.reward.cost_weight,
        n_envs=environment_settings.n_envs,
        seed=settings.seed,
    )

    def build() -> MaskablePPO:
        ppo, options = settings.algo.ppo(environment_settings.n_envs), planner_options(workbench)
        return build_masked_ppo(environment, settings=ppo, n_steps=environment_settings.n_steps, policy_options=options, seed=settings.seed)

    def validate(policy: BasePolicy) -> ValidationResult:
        assert isinstance(policy, PlannerPolicy)
        return _validate(policy, validation, environment, workbench)

    steps = MAX_STEPS * len(training.planned)  # so many an epoch at most: shorter plans make more epochs
    rollout_size = environment_settings.n_envs * environment_settings.n_steps
    n_rollouts = count_rollouts(questions=steps, epochs=settings.algo.epochs, rollout_size=rollout_size)
    return ready_training(
        workbench, folder, environment, build=build, validate=validate, n_rollouts=n_rollouts, terms=TERMS, algorithm=MaskablePPO
    )


def planner_options(workbench: Workbench) -> dict[str, object]:
    """The keyword arguments of `policies.planner.PlannerPolicy`."""
    settings = workbench.settings
    return {
        "tables": TABLE_SLOTS,
        "table_tools": len(ANALYTIC_TOOLS),
        "hidden_sizes": settings.policy.hidden_sizes,
        "activation": settings.policy.activation,
        "input_scale": settings.algo.input_scale,
    }


def _normaliser(workbench: Workbench, questions: PlanningQuestions, n_prefill: int) -> RewardNormaliser:
    """New reward windows, the cost window filled by random plans."""
    normaliser = workbench.empty_normaliser()
    rng = np.random.default_rng([workbench.settings.seed, 1])
    places = rng.integers(len(questions.planned), size=n_prefill).tolist()
    normaliser.prefill([outcome.total_tokens for _, outcome in questions.steer(random_choice(rng), places=places)])
    return normaliser


def _validate(
    policy: PlannerPolicy, questions: PlanningQuestions, environment: BatchedPlanningEnv, workbench: Workbench
) -> ValidationResult:
    outcomes = [outcome for _, outcome in questions.steer(policy_choice(policy))]
    scores, costs = [outcome.f1 for outcome in outcomes], [float(outcome.total_tokens) for outcome in outcomes]
    frozen = environment.validation_reward or environment.normaliser.frozen()
    terms = frozen.rewards(scores, costs, cost_weight=workbench.settings.reward.cost_weight)
    logger.info("validation after epoch %d: F1 %.3f, %.0f tokens a question", environment.n_epochs_done, np.mean(scores), np.mean(costs))
    evidence = float(np.mean([outcome.evidence_tokens for outcome in outcomes]))
    extra = {"f1": float(np.mean(scores)), "tokens_per_question": float(np.mean(costs))}
    return ValidationResult(reward=float(terms.reward.mean()), evidence_tokens=evidence, scores=extra)


def _slots(item: PlannedQuestion, workbench: Workbench) -> NDArray[np.float32]:
    memory = workbench.adamm[item.question.history_id]
    return slot_embeddings(item, memory.table_vectors, memory.vectors["episode"].text)


def make_planning_env(settings: Settings | None = None, *, part: str = "train") -> ToolPlanningEnv:
    """The environment behind ``gymnasium.make("EvidenceGym/ToolPlanning-v0")``.

    Args:
        settings: The settings of a run with ``env=planning``; None takes the defaults on a sample of one history, kept in ``outputs/``.
        part: Which part of the split asks the questions.
    """
    workbench = open_workbench(settings or one_history_settings(env="planning", memory="adamm"), needs=("adamm",))
    environment_settings = workbench.settings.env
    assert isinstance(environment_settings, PlanningEnv)
    asked = without_refusals(workbench.split.questions(workbench.dataset)[part], workbench.dataset.refusal_categories)
    questions = PlanningQuestions(workbench, asked)
    return ToolPlanningEnv(
        questions.planned,
        candidates=questions.candidates,
        answerer=questions.answerer,
        generate=questions.generate,
        normaliser=_normaliser(workbench, questions, environment_settings.n_prefill),
        cost_weight=workbench.settings.reward.cost_weight,
    )
