"""Evaluate a trained selector or planner, compare pipelines, measure retrieval, look into a memory, or judge answers.

``python evaluate.py --help`` lists the settings. Without any, the newest run's export is evaluated on its test split;
`envs.modes` has one function for each mode.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from rich.console import Console

from envs.errors import USER_ERRORS, RunError, explain
from envs.run_folder import SELECTOR, newest_run, split_of_run, stored_settings
from envs.settings import Settings

console = Console()
error_console = Console(stderr=True)
OWN = ("mode", "run", "use", "split", "ablations", "history", "judged")
"""What ``configs/evaluate.yaml`` adds to the settings of a run."""
ALLOWED = {
    "mode": ("methods", "pipelines", "recall", "memory", "judge"),
    "use": ("artefact", "checkpoint"),
    "split": ("train", "validation", "test"),
}


def evaluate(config: DictConfig, folder: Path) -> None:
    """Find the settings, those of a run or the composed ones, and do what the mode says."""
    own = {name: config[name] for name in OWN}
    wrong = [f"{name}={own[name]} must be one of {', '.join(values)}" for name, values in ALLOWED.items() if own[name] not in values]
    if wrong:
        raise RunError("; ".join(wrong))
    mode = own["mode"]
    overrides = [text for text in HydraConfig.get().overrides.task if text.partition("=")[0] not in OWN]
    run = None if mode in ("recall", "memory") or (mode == "pipelines" and own["run"] == "newest") else run_named(own["run"])
    if mode == "pipelines" and run is not None and not (run / SELECTOR).exists():
        raise RunError(f"run={run} has no selector; name a run that trained one (env=selection), or leave run= out")
    if run is not None and mode != "pipelines":
        if mode == "methods" and own["use"] == "artefact" and any(text.startswith("policy.") for text in overrides):
            raise RunError("an exported selector has its policy settings inside; change them with use=checkpoint")
        settings = changed_settings(stored_settings(run), overrides, config)
    else:
        settings = Settings.model_validate(own_settings(config))

    from envs import modes  # torch and the rest take seconds: --help and a wrong setting need not wait for them

    evaluation = modes.Evaluation(settings, folder, own["split"], console)
    if mode == "methods":
        assert run is not None
        other_data = any(text.startswith("data") for text in overrides)
        split = None if other_data else split_of_run(run)
        modes.evaluate_run(evaluation, run, use=own["use"], split=split, same_data=not other_data)
    elif mode == "pipelines":
        modes.evaluate_pipelines(evaluation, run, ablations=bool(own["ablations"]))
    elif mode == "recall":
        modes.measure_recall(evaluation)
    elif mode == "memory":
        modes.look_into_memory(evaluation, own["history"])
    else:
        assert run is not None
        modes.judge_run(evaluation, run, list(own["judged"]))


def run_named(name: str) -> Path:
    """The run that the command line names."""
    run = newest_run() if name == "newest" else Path(str(name))
    if not run.is_dir():
        raise RunError(f"run={run} is no folder; name the folder of a run of train.py")
    return run


def own_settings(config: DictConfig) -> Any:
    """The composed settings without what only this program knows."""
    return OmegaConf.to_container(OmegaConf.masked_copy(config, [str(key) for key in config if key not in OWN]), throw_on_missing=True)


def changed_settings(values: dict[str, Any], overrides: list[str], config: DictConfig) -> Settings:
    """A run's settings with those of the command line in their place.

    Raises:
        RunError: an override cannot change how a finished run is evaluated.
    """
    changed = json.loads(json.dumps(values))
    for override in overrides:
        name = override.partition("=")[0]
        path = name.split(".")
        if path[0] not in values or (len(path) == 1 and name == "experiment"):
            raise RunError(f"{override}: evaluate.py knows {', '.join([*OWN, *values])} and what is in these groups")
        place = changed
        for part in path[:-1]:
            place = place[part]
        chosen = OmegaConf.select(config, name)
        place[path[-1]] = OmegaConf.to_container(chosen, resolve=True) if OmegaConf.is_config(chosen) else chosen
    settings = Settings.model_validate(changed)
    if list(settings.memory.forms) != values["memory"]["forms"]:
        raise RunError(f"memory.forms={list(settings.memory.forms)}, but the selector was trained on {values['memory']['forms']}")
    return settings


@hydra.main(version_base=None, config_path="configs", config_name="evaluate")
def main(config: DictConfig) -> None:
    """Evaluate; a user's mistake is told in one message, without a traceback."""
    try:
        evaluate(config, Path(HydraConfig.get().runtime.output_dir))
    except (*USER_ERRORS, MissingMandatoryValue) as error:
        logging.getLogger(__name__).debug("the error's origin", exc_info=True)
        error_console.print(explain(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
