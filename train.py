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
from envs.settings import Settings
from envs.training import check_logger, export, open_training
from envs.workbench import open_workbench, split_of_run
from models.prices import PriceList
from policies.inference import Selector

console = Console()


def run(settings: Settings, folder: Path) -> float:
    """Do the whole job in ``folder``; returns the exported selector's F1 on the test split."""
    torch.set_num_threads(1)  # the selector is too small for two
    check_logger(settings)
    workbench = open_workbench(settings, split=split_of_run(folder), folder=folder)
    training = open_training(workbench, folder)  # refuses a folder of other settings before anything in it is replaced
    workbench.split.save(folder / "split.json")
    write_json(folder / "settings.json", settings.model_dump(mode="json"))
    write_json(folder / "manifest.json", manifest(workbench))

    policy = training.run()
    exported = export(policy, workbench, folder)
    summaries = evaluate_selector(
        workbench, Selector.load(exported, encoder_id=workbench.encoder.id), folder=folder, part="test", console=console
    )
    report_costs(folder, prices=None if settings.prices is None else PriceList.load(settings.prices), console=console)
    console.print(
        f"run       {folder}\nselector  {exported}\npicture   {folder / 'frontier.png'}", markup=False, highlight=False, soft_wrap=True
    )
    return summaries[SELECTOR].f1


@hydra.main(version_base=None, config_path="configs", config_name="train")
def main(config: DictConfig) -> float:
    """Compose the settings and run; a user's mistake is told in one message, without a traceback."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        values = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        return run(Settings.model_validate(values), folder)
    except (*USER_ERRORS, MissingMandatoryValue) as error:
        logging.getLogger(__name__).debug("the error's origin", exc_info=True)
        console.print(explain(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
