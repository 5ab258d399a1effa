"""Evaluates the learned planner beside the model's own plans and plans that never change."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from envs.evaluation.pipelines import PipelineReport, PipelineSummary, planned_outcomes
from envs.planning import ACTION_NAMES, LOCATE, N_TABLE_ACTIONS, SCOPES, STOP, PlanningRollout, stacked_observations
from envs.planning_training import Choose, PlanningQuestions
from envs.run_folder import PLANNER
from envs.training import provenance
from envs.workbench import Workbench
from policies.planner import PROGRESS, PlannerPolicy
from policies.planner_export import export_planner
from policies.planner_inference import Planner

LEARNED = "learned planner"
_SEARCH_EVENTS = N_TABLE_ACTIONS + SCOPES.index("event")


def evaluate_planner(workbench: Workbench, planner: Planner, *, folder: Path, part: str, console: Console) -> dict[str, PipelineSummary]:
    """Compare on ``part`` of the split and write the files of `envs.evaluation.pipelines`.

    Returns:
        The summaries by method; `LEARNED` is the one under test, ``model planner`` plans by asking the model.
    """
    questions = PlanningQuestions(workbench, workbench.split.questions(workbench.dataset)[part])
    report = PipelineReport(workbench, part)
    report.add_planned(LEARNED, questions.planned, [outcome for _, outcome in questions.steer(exported_choice(planner))])
    report.add_planned("model planner", questions.planned, planned_outcomes(workbench, questions.planned, label="plan", console=console))
    for name, action in {"always search events": _SEARCH_EVENTS, "always locate": LOCATE, "no tools": STOP}.items():
        report.add_planned(name, questions.planned, [outcome for _, outcome in questions.steer(_once(action))])
    return report.write(folder, console)


def export_trained_planner(policy: PlannerPolicy, workbench: Workbench, folder: Path) -> Path:
    """Write the policy as ONNX, safetensors and JSON into ``folder/planner`` and return that path."""
    export_planner(
        policy,
        folder / PLANNER,
        actions=ACTION_NAMES,
        encoder_id=workbench.encoder.id,
        metric_profile=workbench.settings.reward.metric_profile,
        provenance=provenance(workbench),
    )
    return folder / PLANNER


def exported_choice(planner: Planner) -> Choose:
    """The exported planner's best allowed actions."""

    def choose(rollouts: Sequence[PlanningRollout]) -> list[int]:
        stacked = stacked_observations(rollouts)
        actions = planner.choose(
            query=stacked["query"],
            candidates=stacked["candidates"].reshape(*stacked["scores"].shape, -1),
            scores=stacked["scores"],
            present=stacked["present"],
            progress=np.concatenate([stacked[name] for name in PROGRESS], axis=1),
            mask=stacked["action_mask"].astype(np.bool_),
        )
        return [int(action) for action in actions]

    return choose


def _once(action: int) -> Choose:
    """One action, then stop."""

    def choose(rollouts: Sequence[PlanningRollout]) -> list[int]:
        return [STOP if rollout.actions else action for rollout in rollouts]

    return choose
