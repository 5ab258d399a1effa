"""The whole job of ``train.py``, from top to bottom.

Data and memory → PPO on the training questions → best checkpoint → export → evaluation of the export → table
"""

from pathlib import Path

import torch
from rich.console import Console

from envs.evaluation.costs import report_costs
from envs.evaluation.manifest import manifest
from envs.evaluation.records import write_json
from envs.evaluation.report import SELECTOR, evaluate_selector
from envs.planner_report import LEARNED, evaluate_planner, export_trained_planner
from envs.planning_training import open_planning_training
from envs.run_folder import MANIFEST, SETTINGS, SPLIT, split_of_run
from envs.settings import Settings
from envs.training import check_logger, export, open_training
from envs.workbench import Workbench, open_workbench
from models.prices import PriceList
from policies.inference import Selector
from policies.planner import PlannerPolicy
from policies.planner_inference import Planner
from policies.selector import SelectorPolicy


def train_and_report(settings: Settings, folder: Path, console: Console) -> float:
    """Do the whole job in ``folder``; returns the trained policy's F1 on the test split.

    Raises:
        envs.errors.USER_ERRORS: what a user can repair; the message says how.
    """
    torch.set_num_threads(1)  # the policies are too small for two
    check_logger(settings)
    workbench = open_workbench(settings, split=split_of_run(folder), folder=folder, needs=settings.env.needs)
    # Opening refuses a folder of other settings before anything in it is replaced.
    training = open_training(workbench, folder) if settings.env.name == "selection" else open_planning_training(workbench, folder)
    workbench.split.save(folder / SPLIT)
    write_json(folder / SETTINGS, settings.model_dump(mode="json"))
    write_json(folder / MANIFEST, manifest(workbench))

    policy = training.run()
    if isinstance(policy, SelectorPolicy):
        f1 = _report_selector(policy, workbench, folder, console)
    else:
        f1 = _report_planner(policy, workbench, folder, console)
    report_costs(folder, prices=None if settings.prices is None else PriceList.load(settings.prices), console=console)
    console.print(f"run       {folder}", markup=False, highlight=False, soft_wrap=True)
    return f1


def _report_selector(policy: SelectorPolicy, workbench: Workbench, folder: Path, console: Console) -> float:
    """Export the selector and evaluate the export beside every fixed composition; returns its F1."""
    exported = export(policy, workbench, folder)
    selector = Selector.load(exported, encoder_id=workbench.encoder.id)
    summaries = evaluate_selector(workbench, selector, folder=folder, part="test", console=console)
    console.print(f"selector  {exported}\npicture   {folder / 'frontier.png'}", markup=False, highlight=False, soft_wrap=True)
    return summaries[SELECTOR].f1


def _report_planner(policy: PlannerPolicy, workbench: Workbench, folder: Path, console: Console) -> float:
    """Export the planner and evaluate the export beside the model's own plans; returns its F1."""
    exported = export_trained_planner(policy, workbench, folder)
    planner = Planner.load(exported, encoder_id=workbench.encoder.id)
    summaries = evaluate_planner(workbench, planner, folder=folder, part="test", console=console)
    console.print(f"planner   {exported}\npage      {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    return summaries[LEARNED].f1
