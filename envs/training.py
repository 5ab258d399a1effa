"""One training run, from opened data to the best selector on disk and its export (HiVe-Mem §3.3, A.2)."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy

from envs.batched import BatchedSelectionEnv
from envs.errors import RunError
from envs.evaluation.comparison import outcomes_of
from envs.questions import PreparedQuestion
from envs.run_folder import CHECKPOINTS, SELECTOR
from envs.settings import Settings
from envs.vectorised import QuestionVecEnv
from envs.workbench import Workbench
from planners.composers import Composer
from policies.callbacks import BEST_NAME, CHECKPOINT_NAME, TrainingMonitor, ValidationResult
from policies.checkpoint import load_checkpoint, load_weights
from policies.export import export_selector
from policies.planner import PlannerPolicy
from policies.selector import SelectorPolicy
from policies.tracking import TensorBoardTracker, Tracker, WandbTracker
from policies.training import build_ppo, count_rollouts, train

_SERVER = {"base_url", "api_key_env", "concurrency", "timeout_seconds", "connect_timeout_seconds", "max_retries", "max_failures"}
REWARD_TERMS = ("answer_reward", "evidence_tokens", "normalised_cost", "cost_scale", "scaled_cost")

logger = logging.getLogger(__name__)


class PolicySelector:
    """A torch policy as a `Composer`: shows what has a probability above the policy's threshold."""

    def __init__(self, policy: SelectorPolicy) -> None:
        self._policy = policy

    def select_batch(self, query: NDArray[np.float32], summaries: NDArray[np.float32], available: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Decide for B questions; see `planners.composers.Composer`."""
        observation: dict[str, NDArray[Any]] = {
            "query": query,
            "summaries": summaries.reshape(len(query), -1),
            "available": available.astype(np.int8),
        }
        actions, _ = self._policy.predict(observation, deterministic=True)
        return np.asarray(actions, np.bool_).reshape(available.shape)


@dataclass(frozen=True)
class Training:
    """A run that is ready to start or to continue."""

    model: OnPolicyAlgorithm
    monitor: TrainingMonitor
    n_rollouts: int
    folder: Path

    def run(self) -> SelectorPolicy | PlannerPolicy:
        """Train with PPO and return the policy with the best validation reward.

        Raises:
            policies.errors.TrainingStopped: a call failed; the message names the checkpoint.
        """
        train(self.model, rollouts=self.n_rollouts, monitor=self.monitor)
        seconds = asdict(self.monitor.seconds).items()
        logger.info("training took %s", ", ".join(f"{name} {value:.1f} s" for name, value in seconds))
        policy = self.model.policy
        assert isinstance(policy, SelectorPolicy | PlannerPolicy)
        load_weights(policy, self.folder / CHECKPOINTS / BEST_NAME)
        return policy


def open_training(workbench: Workbench, folder: Path) -> Training:
    """Build the environment and PPO; an interrupted run in ``folder`` continues exactly where it was (``resume=true``).

    Raises:
        policies.errors.CheckpointError: the checkpoint in ``folder`` is of other settings.
    """
    settings = workbench.settings
    questions = workbench.questions("train", refusals=settings.data.train_refusals)
    validation = workbench.questions("validation", refusals=False)
    environment = new_environment(workbench, questions)

    def build() -> PPO:
        ppo = settings.algo.ppo(settings.env.n_envs)
        return build_ppo(environment, settings=ppo, policy_options=settings.policy_options, seed=settings.seed)

    def validate(policy: BasePolicy) -> ValidationResult:
        assert isinstance(policy, SelectorPolicy)
        return _validate(PolicySelector(policy), validation, environment, workbench)

    n_rollouts = count_rollouts(questions=len(questions), epochs=settings.algo.epochs, rollout_size=settings.env.n_envs)
    return ready_training(workbench, folder, environment, build=build, validate=validate, n_rollouts=n_rollouts, terms=REWARD_TERMS)


def ready_training(
    workbench: Workbench,
    folder: Path,
    environment: QuestionVecEnv,
    *,
    build: Callable[[], OnPolicyAlgorithm],
    validate: Callable[[BasePolicy], ValidationResult],
    n_rollouts: int,
    terms: Sequence[str],
    algorithm: type[OnPolicyAlgorithm] = PPO,
) -> Training:
    """Continue the run that ``folder`` holds, or start one; arguments as for `TrainingMonitor`, ``build`` makes a fresh model.

    Raises:
        policies.errors.CheckpointError: the checkpoint in ``folder`` is of other settings.
    """
    settings = workbench.settings
    checkpoint = folder / CHECKPOINTS / CHECKPOINT_NAME
    fingerprint = resume_fingerprint(workbench)
    resumed = None
    if settings.resume and checkpoint.exists():
        resumed = load_checkpoint(checkpoint, environment, fingerprint=fingerprint, algorithm=algorithm)
        logger.warning("%s: continuing after rollout %s", checkpoint, resumed.progress["rollout"])
    model = resumed.model if resumed else build()
    monitor = TrainingMonitor(
        folder / CHECKPOINTS,
        rollouts=n_rollouts,
        terms=terms,
        epochs_complete=lambda: environment.n_epochs_done,
        validate=lambda: validate(model.policy),
        checkpoint_every=max(1, n_rollouts // settings.algo.epochs // 4),
        fingerprint=fingerprint,
        trackers=open_trackers(settings, folder),
        progress_bar=True,
        resumed=resumed,
    )
    return Training(model, monitor, n_rollouts, folder)


def check_logger(settings: Settings) -> None:
    """Say at once, before anything is built, that a chosen logger is not installed; raises `RunError`."""
    if settings.logger.wandb != "off" and find_spec("wandb") is None:
        raise RunError("logger.wandb needs Weights & Biases: pip install wandb, or choose logger=tensorboard")


def export(policy: SelectorPolicy, workbench: Workbench, folder: Path) -> Path:
    """Write the policy as ONNX, safetensors and JSON into ``folder/selector`` and return that path."""
    settings = workbench.settings
    export_selector(
        policy,
        folder / SELECTOR,
        forms=list(workbench.answerer.forms),
        encoder_id=workbench.encoder.id,
        encoder_dimension=workbench.encoder.dimension,
        threshold=settings.policy.threshold,
        metric_profile=settings.reward.metric_profile,
        provenance=provenance(workbench),
    )
    return folder / SELECTOR


def provenance(workbench: Workbench) -> dict[str, str | int | float]:
    """What an export says about its training."""
    settings = workbench.settings
    return {
        "dataset": workbench.dataset.name,
        "data_hash": workbench.dataset.content_hash,
        "answerer": workbench.door.backend.model_id,
        "cost_weight": settings.reward.cost_weight,
        "seed": settings.seed,
        "epochs": settings.algo.epochs,
    }


def new_environment(workbench: Workbench, questions: Sequence[PreparedQuestion]) -> BatchedSelectionEnv:
    """The batched training environment over ``questions``, its cost window filled."""
    settings = workbench.settings
    return BatchedSelectionEnv(
        questions,
        answerer=workbench.answerer,
        normaliser=workbench.reward_normaliser(questions),
        cost_weight=settings.reward.cost_weight,
        n_envs=settings.env.n_envs,
        seed=settings.seed,
    )


def untrained_policy(workbench: Workbench, weights: Path) -> SelectorPolicy:
    """A policy of the run's layout with ``weights`` (safetensors) loaded, for evaluation of a checkpoint."""
    settings = workbench.settings
    environment = new_environment(workbench, workbench.questions("validation", refusals=False))
    policy = SelectorPolicy(
        environment.observation_space,
        environment.action_space,
        lambda _: settings.algo.learning_rate,
        **settings.policy_options,
    )
    load_weights(policy, weights)
    return policy


def resume_fingerprint(workbench: Workbench) -> dict[str, str]:
    """What an interrupted run and its continuation must share: settings, data, split, answerer and banks.

    Not where data and server are and how the server is asked: what stopped the run may be repaired there.
    """
    unshared: dict[str, bool | set[str]] = {name: True for name in ("cache", "call_cache", "prices", "resume", "logger")}
    unshared |= {"data": {"root"}, "vlm": _SERVER, "encoder": _SERVER}
    settings = workbench.settings.model_dump(mode="json", exclude=unshared)
    flat = {
        f"{group}.{name}": str(value) for group, values in settings.items() if isinstance(values, dict) for name, value in values.items()
    }
    return flat | {
        "seed": str(workbench.settings.seed),
        "data_hash": workbench.dataset.content_hash,
        "answerer": workbench.door.backend.model_id,
        "banks": " ".join(memory.folder.name for memories in (workbench.banks, workbench.adamm) for memory in memories.values()),
        "split": hashlib.sha256(repr(workbench.split).encode()).hexdigest(),
    }


def _validate(
    composer: Composer, questions: Sequence[PreparedQuestion], environment: BatchedSelectionEnv, workbench: Workbench
) -> ValidationResult:
    outcomes = outcomes_of(composer, questions, workbench.answerer)
    scores, costs = [outcome.f1 for outcome in outcomes], [float(outcome.evidence.total) for outcome in outcomes]
    frozen = environment.validation_reward or environment.normaliser.frozen()
    terms = frozen.rewards(scores, costs, cost_weight=workbench.settings.reward.cost_weight)
    recalls = [outcome.recall for outcome in outcomes if outcome.recall is not None]
    logger.info(
        "validation after epoch %d: F1 %.3f, %.0f evidence tokens a question", environment.n_epochs_done, np.mean(scores), np.mean(costs)
    )
    extra = {"f1": float(np.mean(scores))} | ({"recall": float(np.mean(recalls))} if recalls else {})
    return ValidationResult(reward=float(terms.reward.mean()), evidence_tokens=float(np.mean(costs)), scores=extra)


def open_trackers(settings: Settings, folder: Path) -> list[Tracker]:
    """Where a run's training curves go besides its own metrics file."""
    trackers: list[Tracker] = []
    if settings.logger.tensorboard:
        trackers.append(TensorBoardTracker(folder / "tensorboard"))
    if settings.logger.wandb != "off":
        trackers.append(
            WandbTracker(
                project=settings.logger.wandb_project,
                name=folder.name,
                run_id=folder.name,
                folder=folder,
                mode=settings.logger.wandb,
                config=settings.model_dump(mode="json"),
            )
        )
    return trackers
