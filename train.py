"""Train an evidence selector or a planner, evaluate it beside what it must beat, and export it.

``python train.py --help`` lists the settings; `envs.job` is the whole job, from top to bottom.
"""

import logging
import sys
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from rich.console import Console

from envs.errors import USER_ERRORS, explain
from envs.run_folder import sole_run
from envs.settings import Settings
from policies.errors import TrainingStopped

console = Console()
error_console = Console(stderr=True)


@hydra.main(version_base=None, config_path="configs", config_name="train")
def main(config: DictConfig) -> float:
    """Compose the settings and run; a user's mistake is told in one message, without a traceback."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        values = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        settings = Settings.model_validate(values)
        from envs.job import train_and_report  # torch and the rest take seconds: --help and a wrong setting need not wait for them

        with sole_run(folder):
            return train_and_report(settings, folder, console)
    except KeyboardInterrupt as interrupt:
        error_console.print("\n".join(["stopped", *getattr(interrupt, "__notes__", [])]), markup=False, highlight=False, soft_wrap=True)
        error_console.print(_again(folder), markup=False, highlight=False, soft_wrap=True)
        sys.exit(130)
    except (*USER_ERRORS, MissingMandatoryValue) as error:
        logging.getLogger(__name__).debug("the error's origin", exc_info=True)
        error_console.print(explain(error), style="red", markup=False, highlight=False, soft_wrap=True)
        if isinstance(error, TrainingStopped) and error.checkpoint is not None:
            error_console.print(_again(folder), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


def _again(folder: Path) -> str:
    return f"to go on, repeat the command with hydra.run.dir={folder}"


if __name__ == "__main__":
    main()
