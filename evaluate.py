"""Evaluate a trained selector beside every fixed composition, compare pipelines, measure retrieval, or look into a memory.

``python evaluate.py --help`` lists the settings. Without any, the newest run's export is evaluated on its test split.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import hydra
import numpy as np
import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from rich.console import Console

from envs.errors import USER_ERRORS, RunError, explain
from envs.evaluation.costs import report_costs
from envs.evaluation.gallery import write_gallery
from envs.evaluation.judging import judge_answers, read_answers
from envs.evaluation.look import print_memory
from envs.evaluation.manifest import manifest
from envs.evaluation.pipelines import compare_pipelines
from envs.evaluation.records import write_json
from envs.evaluation.report import evaluate_selector
from envs.questions import query_vectors
from envs.settings import Settings
from envs.training import CHECKPOINTS, EXPORT, PolicySelector, untrained_policy
from envs.workbench import Workbench, open_data_and_door, open_workbench, split_of_run
from memory.hive.recall import expansion_gain
from models.embedded.engine import EmbeddedEngine
from models.prices import PriceList
from planners.composers import Composer, Uniform
from policies.callbacks import BEST_NAME
from policies.inference import Selector

console = Console()
error_console = Console(stderr=True)
RUNS = Path("outputs")
OWN = ("mode", "run", "use", "split", "ablations", "history", "judged")
"""What ``configs/evaluate.yaml`` adds to the settings of a run."""


Own = dict[str, Any]


def evaluate_run(config: DictConfig, own: Own, folder: Path) -> None:
    """Evaluate a run's selector, exported or from its best checkpoint, beside every fixed composition."""
    run, use = run_folder(own), own["use"]
    overrides = settings_overrides()
    if use == "artefact":
        Selector.load(run / EXPORT)  # what is missing is told before anything is built
        if any(override.startswith("policy.") for override in overrides):
            raise RunError("an exported selector has its policy settings inside; change them with use=checkpoint")
    settings = changed_settings(stored_settings(run), overrides, config)
    split = None if any(text.startswith("data") for text in overrides) else split_of_run(run)
    workbench = open_workbench(settings, split=split, folder=folder)
    check_data(workbench, run, overrides)
    selector: Composer
    if use == "artefact":
        selector = exported_selector(run, workbench)
    else:
        selector = PolicySelector(untrained_policy(workbench, run / CHECKPOINTS / BEST_NAME))
    write_json(folder / "manifest.json", manifest(workbench) | {"run": str(run), "use": use})
    evaluate_selector(workbench, selector, folder=folder, part=own["split"], console=console)
    finish(workbench, folder, f"evaluated  {run} ({use})")


def evaluate_pipelines(config: DictConfig, own: Own, folder: Path) -> None:
    """Compare HiVe-Mem's compositions, AdaMM's planner and both joined; with a run's selector if ``run`` names one."""
    settings = Settings.model_validate(own_settings(config))
    workbench = open_workbench(settings, folder=folder, needs=("hive", "adamm"))
    forms = list(workbench.answerer.forms)
    composers: dict[str, Composer] = {"all-forms": Uniform(np.ones(len(forms), np.bool_))}
    if own["run"] != "newest":
        composers["selector"] = exported_selector(run_folder(own), workbench)
    write_json(folder / "manifest.json", manifest(workbench) | {"run": str(own["run"])})
    compare_pipelines(workbench, composers, part=own["split"], ablations=bool(own["ablations"]), folder=folder, console=console)
    finish(workbench, folder, f"traces     python -m envs.evaluation.traces {folder}")


def measure_recall(config: DictConfig, own: Own, folder: Path) -> None:
    """Compare graph expansion with semantic retrieval of equal size, over all questions with gold rounds."""
    workbench = open_workbench(Settings.model_validate(own_settings(config)))
    questions = workbench.dataset.questions
    vectors = query_vectors(questions, workbench.encoder)
    retrieval = workbench.settings.memory.retrieval
    gain = expansion_gain(questions, vectors, workbench.banks, retrieval, np.random.default_rng(workbench.settings.seed))
    write_json(folder / "recall.json", vars(gain))
    interval = (
        f"95 % interval {gain.low:+.4f} to {gain.high:+.4f}, clustered by history"
        if gain.n_histories > 1
        else "no interval from one history"
    )
    say(
        f"{workbench.dataset.name}: recall of gold episodes over {gain.n_questions} questions of {gain.n_histories} histories: "
        f"{retrieval.k_ret} seeds + up to {retrieval.k_exp} neighbours {gain.expanded:.4f}, "
        f"semantic top-{retrieval.k_total} {gain.semantic:.4f}, difference {gain.difference:+.4f} "
        f"({interval})"
    )


def look_into_memory(config: DictConfig, own: Own, folder: Path) -> None:
    """Print what was remembered of one history, or of each, and write a page of it."""
    workbench = open_workbench(Settings.model_validate(own_settings(config)), needs=())
    histories = [history for history in workbench.dataset.histories if own["history"] in (None, history.id)]
    if not histories:
        raise RunError(f"history={own['history']}: the data has {', '.join(history.id for history in workbench.dataset.histories)}")
    for number, history in enumerate(histories):
        bank, adamm = workbench.banks.get(history.id), workbench.adamm.get(history.id)
        print_memory(history, bank=bank, adamm=adamm, console=console)
        page = folder / f"memory_{number:03}.html"
        write_gallery(page, history, bank=bank, adamm=adamm, embedded=workbench.is_embedded)
        say(f"page       {page}")


def judge_run(config: DictConfig, own: Own, folder: Path) -> None:
    """Let the chosen model judge the answers that a run or an evaluation stored."""
    run = run_folder(own)
    settings = changed_settings(stored_settings(run), settings_overrides(), config)
    rows = read_answers(run / "rows.parquet", list(own["judged"]))
    dataset, door = open_data_and_door(settings, folder=folder)
    judge_answers(rows, questions=dataset.questions, generate=door.generate, judge=door.backend.model_id, folder=folder, console=console)
    if isinstance(door.backend, EmbeddedEngine):
        console.print("Judged by the embedded engine's rules, which only count common words: not a language model's judgement.")
    report_costs(folder, prices=None if settings.prices is None else PriceList.load(settings.prices), console=console)
    say(f"judged     {run}\nresults    {folder}")


def run_folder(own: Own) -> Path:
    """The run that the command line names."""
    return newest_run() if own["run"] == "newest" else Path(str(own["run"]))


def settings_overrides() -> list[str]:
    """The overrides of the command line that change settings of a run."""
    return [text for text in HydraConfig.get().overrides.task if text.partition("=")[0] not in OWN]


def own_settings(config: DictConfig) -> Any:
    """The composed settings without what only this program knows."""
    return OmegaConf.to_container(OmegaConf.masked_copy(config, [str(key) for key in config if key not in OWN]), throw_on_missing=True)


def exported_selector(run: Path, workbench: Workbench) -> Selector:
    """A run's export, checked against the workbench's encoder and forms."""
    exported = Selector.load(run / EXPORT, encoder_id=workbench.encoder.id)
    if list(exported.forms) != list(workbench.answerer.forms):
        raise RunError(f"the selector was trained on the forms {list(exported.forms)}, memory.forms is {list(workbench.answerer.forms)}")
    return exported


def finish(workbench: Workbench, folder: Path, what: str) -> None:
    """Report the costs and say where the results are."""
    prices = workbench.settings.prices
    report_costs(folder, prices=None if prices is None else PriceList.load(prices), console=console)
    say(f"{what}\nresults    {folder}")


def say(text: str) -> None:
    """Print a line as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def newest_run() -> Path:
    """The newest run of ``train.py`` that has an exported selector."""
    runs = sorted(RUNS.rglob(f"{EXPORT}/selector.json"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise RunError(f"{RUNS} holds no finished run; train one with python train.py, or name one with run=PATH")
    return runs[-1].parents[1]


def stored_settings(run: Path) -> dict[str, Any]:
    """The settings that a run of ``train.py`` left in its folder."""
    path = run / "settings.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        Settings.model_validate(values)
    except (OSError, ValueError) as error:
        raise RunError(f"{path} does not hold a run's settings; run= must name the folder of a run of train.py ({error})") from error
    assert isinstance(values, dict)
    return values


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


def check_data(workbench: Workbench, run: Path, overrides: list[str]) -> None:
    """Refuse data that changed since the run, unless the command line names other data."""
    if any(override.startswith("data") for override in overrides):
        return
    trained_on = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["data_hash"]
    if trained_on != workbench.dataset.content_hash:
        raise RunError(f"{workbench.settings.data.root} has changed since {run} was trained; name data.root to evaluate on it all the same")


@hydra.main(version_base=None, config_path="configs", config_name="evaluate")
def main(config: DictConfig) -> None:
    """Compose the settings and evaluate; a user's mistake is told in one message, without a traceback."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    torch.set_num_threads(1)
    own = {name: config[name] for name in OWN}
    modes = {
        "methods": evaluate_run,
        "pipelines": evaluate_pipelines,
        "recall": measure_recall,
        "memory": look_into_memory,
        "judge": judge_run,
    }
    try:
        allowed = {"mode": tuple(modes), "use": ("artefact", "checkpoint"), "split": ("train", "validation", "test")}
        wrong = [f"{name}={own[name]} must be one of {', '.join(values)}" for name, values in allowed.items() if own[name] not in values]
        if wrong:
            raise RunError("; ".join(wrong))
        modes[own["mode"]](config, own, folder)
    except (*USER_ERRORS, MissingMandatoryValue) as error:
        logging.getLogger(__name__).debug("the error's origin", exc_info=True)
        error_console.print(explain(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
