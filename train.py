"""Train an evidence selector, evaluate it beside every fixed composition, and export it.

``python train.py --help`` lists the settings. `run` is the whole job, from top to bottom:

    data and banks → PPO on the training questions → best checkpoint → export → evaluation of the export → table
"""

import logging
import sys
from pathlib import Path

import hydra
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from rich.console import Console

from envs.errors import USER_ERRORS, explain
from envs.evaluation.costs import report_costs
from envs.evaluation.manifest import manifest
from envs.evaluation.records import write_json
from envs.evaluation.report import SELECTOR, evaluate_selector
from envs.planner_report import PLANNER, evaluate_planner, export_trained_planner
from envs.planning_training import open_planning_training
from envs.settings import Settings
from envs.training import check_logger, export, open_training, sole_run
from envs.workbench import Workbench, open_workbench, split_of_run
from models.prices import PriceList
from policies.errors import TrainingStopped
from policies.inference import Selector
from policies.planner import PlannerPolicy
from policies.planner_inference import Planner
from policies.selector import SelectorPolicy

console = Console()
error_console = Console(stderr=True)


def run(settings: Settings, folder: Path) -> float:
    """Do the whole job in ``folder``; returns the trained policy's F1 on the test split."""
    torch.set_num_threads(1)  # the selector is too small for two
    check_logger(settings)
    workbench = open_workbench(settings, split=split_of_run(folder), folder=folder, needs=settings.env.needs)
    # Opening refuses a folder of other settings before anything in it is replaced.
    training = open_training(workbench, folder) if settings.env.name == "selection" else open_planning_training(workbench, folder)
    workbench.split.save(folder / "split.json")
    write_json(folder / "settings.json", settings.model_dump(mode="json"))
    write_json(folder / "manifest.json", manifest(workbench))

    policy = training.run()
    f1 = select_and_report(policy, workbench, folder) if isinstance(policy, SelectorPolicy) else plan_and_report(policy, workbench, folder)
    report_costs(folder, prices=None if settings.prices is None else PriceList.load(settings.prices), console=console)
    console.print(f"run       {folder}", markup=False, highlight=False, soft_wrap=True)
    return f1


def select_and_report(policy: SelectorPolicy, workbench: Workbench, folder: Path) -> float:
    """Export the selector and evaluate the export beside every fixed composition; returns its F1."""
    exported = export(policy, workbench, folder)
    selector = Selector.load(exported, encoder_id=workbench.encoder.id)
    summaries = evaluate_selector(workbench, selector, folder=folder, part="test", console=console)
    console.print(f"selector  {exported}\npicture   {folder / 'frontier.png'}", markup=False, highlight=False, soft_wrap=True)
    return summaries[SELECTOR].f1


def plan_and_report(policy: PlannerPolicy, workbench: Workbench, folder: Path) -> float:
    """Export the planner and evaluate the export beside the model's own plans; returns its F1."""
    exported = export_trained_planner(policy, workbench, folder)
    planner = Planner.load(exported, encoder_id=workbench.encoder.id)
    summaries = evaluate_planner(workbench, planner, folder=folder, part="test", console=console)
    console.print(f"planner   {exported}\npage      {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    return summaries[PLANNER].f1


@hydra.main(version_base=None, config_path="configs", config_name="train")
def main(config: DictConfig) -> float:
    """Compose the settings and run; a user's mistake is told in one message, without a traceback."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        values = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        settings = Settings.model_validate(values)
        with sole_run(folder):
            return run(settings, folder)
    except (*USER_ERRORS, MissingMandatoryValue) as error:
        logging.getLogger(__name__).debug("the error's origin", exc_info=True)
        error_console.print(explain(error), style="red", markup=False, highlight=False, soft_wrap=True)
        if isinstance(error, TrainingStopped) and error.checkpoint is not None:
            error_console.print(f"to go on, repeat the command with hydra.run.dir={folder}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
