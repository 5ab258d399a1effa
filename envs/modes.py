"""What ``evaluate.py`` can do, one function each; a folder gets the results, the terminal the summary."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from data.splits import Split
from envs.errors import RunError
from envs.evaluation.costs import report_costs
from envs.evaluation.gallery import write_gallery
from envs.evaluation.judging import judge_answers, read_answers
from envs.evaluation.look import print_memory
from envs.evaluation.manifest import manifest
from envs.evaluation.pipelines import compare_pipelines
from envs.evaluation.records import write_json
from envs.evaluation.report import evaluate_selector
from envs.planner_report import evaluate_planner
from envs.questions import query_vectors
from envs.run_folder import CHECKPOINTS, MANIFEST, PLANNER, SELECTOR, stored_data_hash
from envs.settings import Settings
from envs.training import PolicySelector, untrained_policy
from envs.workbench import Workbench, open_data_and_door, open_workbench
from memory.hive.recall import expansion_gain
from models.embedded.engine import EmbeddedEngine
from models.prices import PriceList
from planners.composers import Composer, Uniform
from policies.callbacks import BEST_NAME
from policies.inference import Selector
from policies.planner_inference import Planner

torch.set_num_threads(1)  # the policies are too small for two


@dataclass(frozen=True)
class Evaluation:
    """Where results go, and the part of the split that is asked."""

    settings: Settings
    folder: Path
    part: str
    console: Console

    def finish(self, text: str) -> None:
        """Report the costs and say where the results are."""
        prices = self.settings.prices
        report_costs(self.folder, prices=None if prices is None else PriceList.load(prices), console=self.console)
        self.say(f"{text}\nresults    {self.folder}")

    def say(self, text: str) -> None:
        """Print a line as it is."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def evaluate_run(evaluation: Evaluation, run: Path, *, use: str, split: Split | None, same_data: bool) -> None:
    """Evaluate what a run trained beside what it must beat: a selector (exported, or its best checkpoint) or an exported planner.

    Args:
        evaluation: with the run's settings.
        run: its folder.
        use: ``artefact`` or ``checkpoint``.
        split: the run's, None for a new one.
        same_data: whether the data must be what the run was trained on.

    Raises:
        RunError: the data changed, or the export does not fit the settings.
        policies.errors.ArtefactError: there is no sound export.
    """
    plans = evaluation.settings.env.name == "planning"
    if plans and use != "artefact":
        raise RunError(f"use={use}: a planner is evaluated as it was exported; use=artefact")
    if use == "artefact":  # what is missing is told before anything is built
        Planner.load(run / PLANNER) if plans else Selector.load(run / SELECTOR)
    workbench = open_workbench(evaluation.settings, split=split, folder=evaluation.folder, needs=evaluation.settings.env.needs)
    if same_data and stored_data_hash(run) != workbench.dataset.content_hash:
        root = evaluation.settings.data.root
        raise RunError(f"{root} has changed since {run} was trained; name data.root to evaluate on it all the same")
    write_json(evaluation.folder / MANIFEST, manifest(workbench) | {"run": str(run), "use": use})
    folder, part, console = evaluation.folder, evaluation.part, evaluation.console
    if plans:
        planner = Planner.load(run / PLANNER, encoder_id=workbench.encoder.id)
        evaluate_planner(workbench, planner, folder=folder, part=part, console=console)
    else:
        selector: Composer
        if use == "artefact":
            selector = _exported_selector(run, workbench)
        else:
            selector = PolicySelector(untrained_policy(workbench, run / CHECKPOINTS / BEST_NAME))
        evaluate_selector(workbench, selector, folder=folder, part=part, console=console)
    evaluation.finish(f"evaluated  {run} ({use})")


def evaluate_pipelines(evaluation: Evaluation, run: Path | None, *, ablations: bool) -> None:
    """Compare HiVe-Mem's compositions, AdaMM's planner and both joined; with the selector of ``run`` if there is one.

    Raises:
        policies.errors.ArtefactError: the run has no sound selector.
    """
    if run is not None:
        Selector.load(run / SELECTOR)  # what is missing is told before anything is built
    workbench = open_workbench(evaluation.settings, folder=evaluation.folder, needs=("hive", "adamm"))
    forms = list(workbench.answerer.forms)
    composers: dict[str, Composer] = {"all-forms": Uniform(np.ones(len(forms), np.bool_))}
    if run is not None:
        composers["selector"] = _exported_selector(run, workbench)
    write_json(evaluation.folder / MANIFEST, manifest(workbench) | {"run": None if run is None else str(run)})
    compare_pipelines(workbench, composers, part=evaluation.part, ablations=ablations, folder=evaluation.folder, console=evaluation.console)
    evaluation.finish(f"traces     python -m envs.evaluation.traces {evaluation.folder}\npage       {evaluation.folder / 'report.html'}")


def measure_recall(evaluation: Evaluation) -> None:
    """Compare graph expansion with semantic retrieval of equal size, over all questions with gold rounds."""
    workbench = open_workbench(evaluation.settings)
    questions = workbench.dataset.questions
    vectors = query_vectors(questions, workbench.encoder)
    retrieval = workbench.settings.memory.retrieval
    gain = expansion_gain(questions, vectors, workbench.banks, retrieval, np.random.default_rng(workbench.settings.seed))
    write_json(evaluation.folder / "recall.json", vars(gain))
    interval = (
        f"95 % interval {gain.low:+.4f} to {gain.high:+.4f}, clustered by history"
        if gain.n_histories > 1
        else "no interval from one history"
    )
    evaluation.say(
        f"{workbench.dataset.name}: recall of gold episodes over {gain.n_questions} questions of {gain.n_histories} histories: "
        f"{retrieval.k_ret} seeds + up to {retrieval.k_exp} neighbours {gain.expanded:.4f}, "
        f"semantic top-{retrieval.k_total} {gain.semantic:.4f}, difference {gain.difference:+.4f} "
        f"({interval})"
    )


def look_into_memory(evaluation: Evaluation, history_id: str | None) -> None:
    """Print what was remembered of one history, or of each, and write a page of it.

    Raises:
        RunError: there is no such history.
    """
    workbench = open_workbench(evaluation.settings, needs=())
    histories = [history for history in workbench.dataset.histories if history_id in (None, history.id)]
    if not histories:
        raise RunError(f"history={history_id}: the data has {', '.join(history.id for history in workbench.dataset.histories)}")
    for number, history in enumerate(histories):
        bank, adamm = workbench.banks.get(history.id), workbench.adamm.get(history.id)
        print_memory(history, bank=bank, adamm=adamm, console=evaluation.console)
        page = evaluation.folder / f"memory_{number:03}.html"
        write_gallery(page, history, bank=bank, adamm=adamm, embedded=workbench.is_embedded)
        evaluation.say(f"page       {page}")


def judge_run(evaluation: Evaluation, run: Path, methods: list[str]) -> None:
    """Let the chosen model judge the answers of methods that a run or an evaluation stored."""
    rows = read_answers(run / "rows.parquet", methods)
    dataset, door = open_data_and_door(evaluation.settings, folder=evaluation.folder)
    judge = door.backend.model_id
    judge_answers(
        rows, questions=dataset.questions, generate=door.generate, judge=judge, folder=evaluation.folder, console=evaluation.console
    )
    if isinstance(door.backend, EmbeddedEngine):
        evaluation.say("Judged by the embedded engine's rules, which only count common words: not a language model's judgement.")
    evaluation.finish(f"judged     {run}")


def _exported_selector(run: Path, workbench: Workbench) -> Selector:
    """A run's export, checked against the workbench's encoder and forms."""
    exported = Selector.load(run / SELECTOR, encoder_id=workbench.encoder.id)
    if list(exported.forms) != list(workbench.answerer.forms):
        raise RunError(f"the selector was trained on the forms {list(exported.forms)}, memory.forms is {list(workbench.answerer.forms)}")
    return exported
