"""Compares pipelines over a split: HiVe-Mem's compositions, AdaMM's planner, both joined, and their ablations.

``rows.parquet``    one row per method and question
``summary.json``    one object per method, with F1 by category
``traces.jsonl``    how every planned question was answered (`envs.evaluation.traces`)
``report.html``     the table and the traces, as a page
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from data.history import Question
from envs.evaluation.comparison import outcomes_of
from envs.evaluation.page import write_page
from envs.evaluation.records import write_json, write_records
from envs.evaluation.traces import TRACES, trace_of, write_traces
from envs.pipelines import Pipeline, prepare_planned
from envs.planned import PlanAnswerer, PlannedOutcome, PlannedQuestion
from envs.questions import PreparedQuestion
from envs.workbench import EMBEDDED_NOTE, Workbench
from planners.composers import Composer
from planners.execution import run_together

_BATCH = 32
ABLATIONS: Mapping[str, dict[str, Any]] = {
    "w/o analytic": {"analytic": False},
    "w/o retrieval": {"retrieval": False},
    "w/o context": {"context": "all"},
    "w/o progressive": {"progressive": False},
}
"""AdaMM's ablations (Figure 4), as changes of a `Pipeline`."""


@dataclass(frozen=True)
class PipelineSummary:
    """One method over one split; refusal questions are left out of every number but the last.

    ``f1_by_category`` is over each category's questions. Tokens are means per question: ``tokens_per_question`` of all calls, planning and
    answering, ``evidence_tokens_per_question`` of the evidence as rendered. ``failed_steps`` counts steps that were skipped.
    """

    f1: float
    f1_by_category: dict[str, float]
    evidence_tokens_per_question: float
    tokens_per_question: float
    recall: float | None
    failed_steps: int
    n: int
    refusal_f1: float | None


class PipelineReport:
    """Collects methods' rows and traces over one part of the split, and writes the files above."""

    def __init__(self, workbench: Workbench, part: str) -> None:
        self._workbench = workbench
        self._part = part
        self._rows: list[dict[str, Any]] = []
        self._traces: list[dict[str, Any]] = []

    def add_composed(self, method: str, composer: Composer, questions: Sequence[PreparedQuestion]) -> None:
        """Answer with HiVe-Mem's retrieval and a composer."""
        names = ("answer", "f1", "bleu1", "exact_match", "recall", "total_tokens")
        for item, outcome in zip(questions, outcomes_of(composer, questions, self._workbench.answerer), strict=True):
            tokens = {"evidence_tokens": outcome.evidence.total, "planning_tokens": 0}
            values = {name: getattr(outcome, name) for name in names}
            self._rows.append(self._row(method, item.question) | values | tokens | {"tools": [], "failed_steps": 0})

    def add_planned(self, method: str, questions: Sequence[PlannedQuestion], outcomes: Sequence[PlannedOutcome]) -> None:
        """Take the outcomes of planned questions, with their traces."""
        names = ("answer", "f1", "bleu1", "exact_match", "recall", "total_tokens", "evidence_tokens", "planning_tokens")
        for item, outcome in zip(questions, outcomes, strict=True):
            steps = outcome.execution.steps
            values = {name: getattr(outcome, name) for name in names}
            used = {"tools": [step.step.tool for step in steps], "failed_steps": sum(step.result is None for step in steps)}
            self._rows.append(self._row(method, item.question) | values | used)
            self._traces.append(trace_of(method, item, outcome))

    def write(self, folder: Path, console: Console) -> dict[str, PipelineSummary]:
        """Write the files, print the table, and return the summaries by method."""
        methods = dict.fromkeys(row["method"] for row in self._rows)
        summaries = {method: _summary([row for row in self._rows if row["method"] == method]) for method in methods}
        write_records(folder / "rows.parquet", self._rows)
        write_traces(folder / TRACES, self._traces)
        write_json(folder / "summary.json", {method: asdict(summary) for method, summary in summaries.items()})
        workbench = self._workbench
        metric = workbench.settings.reward.metric_profile
        one = next(iter(summaries.values()))
        n_refusals = len({row["question_id"] for row in self._rows if row["is_refusal"]})
        size = f"{one.n} questions and {n_refusals} refusals" if n_refusals else f"{one.n} questions"
        title = f"{workbench.dataset.name}, {self._part} split ({size}), F1 profile {metric}, answered by {workbench.answerer_name}"
        note = EMBEDDED_NOTE if workbench.is_embedded else ""
        write_page(folder / "report.html", title=title, summaries=summaries, traces=self._traces, note=note)
        _print(summaries, title, console)
        if note:
            console.print(note)
        return summaries

    def _row(self, method: str, question: Question) -> dict[str, Any]:
        return {
            "method": method,
            "split": self._part,
            "history_id": question.history_id,
            "question_id": question.id,
            "category": question.category,
            "is_refusal": question.category in self._workbench.dataset.refusal_categories,
            "gold": question.answer,
        }


def planned_outcomes(workbench: Workbench, planned: Sequence[PlannedQuestion], *, label: str, console: Console) -> list[PlannedOutcome]:
    """Let the model plan, and answer every question, in batches."""
    answerer = PlanAnswerer(counter=workbench.door.backend.counter, metric=workbench.answerer.metric)
    outcomes: list[PlannedOutcome] = []
    for start in track(range(0, len(planned), _BATCH), label, console=console, transient=True, disable=not console.is_terminal):
        batch = planned[start : start + _BATCH]
        outcomes += run_together([answerer.plan_and_answer(item) for item in batch], workbench.door.generate)
    return outcomes


def compare_pipelines(
    workbench: Workbench, composers: Mapping[str, Composer], *, part: str, ablations: bool, folder: Path, console: Console
) -> dict[str, PipelineSummary]:
    """Answer a part of the split by every pipeline, write the files above, print the table.

    Args:
        workbench: with both memories built.
        composers: by name; each gives a method ``hive NAME`` and a method ``joint NAME``.
        part: the part of the split.
        ablations: whether AdaMM's ablations are run too.
        folder: where the files go.
        console: for progress and the table.
    """
    questions = workbench.split.questions(workbench.dataset)[part]
    report = PipelineReport(workbench, part)
    prepared = workbench.prepare(questions)
    for name, composer in composers.items():
        report.add_composed(f"hive {name}", composer, prepared)
    methods: dict[str, tuple[Pipeline, Composer | None]] = {"adamm": (Pipeline(name="adamm"), None)}
    methods |= {f"joint {name}": (Pipeline(name="joint"), composer) for name, composer in composers.items()}
    if ablations:
        methods |= {f"adamm {name}": (Pipeline(name="adamm", **change), None) for name, change in ABLATIONS.items()}
    for method, (pipeline, method_composer) in methods.items():
        planned = prepare_planned(workbench, questions, pipeline, composer=method_composer)
        if n_left_out := max((item.context.n_left_out for item in planned), default=0):
            console.print(f"{method}: up to {n_left_out} entries of the memory did not fit the planning context")
        report.add_planned(method, planned, planned_outcomes(workbench, planned, label=method, console=console))
    return report.write(folder, console)


def _summary(rows: Sequence[Mapping[str, Any]]) -> PipelineSummary:
    asked = [row for row in rows if not row["is_refusal"]]
    refused = [row["f1"] for row in rows if row["is_refusal"]]
    recalls = [row["recall"] for row in asked if row["recall"] is not None]
    categories = sorted({row["category"] for row in asked})
    return PipelineSummary(
        f1=fmean(row["f1"] for row in asked),
        f1_by_category={name: fmean(row["f1"] for row in asked if row["category"] == name) for name in categories},
        evidence_tokens_per_question=fmean(row["evidence_tokens"] for row in asked),
        tokens_per_question=fmean(row["total_tokens"] for row in asked),
        recall=fmean(recalls) if recalls else None,
        failed_steps=sum(row["failed_steps"] for row in asked),
        n=len(asked),
        refusal_f1=fmean(refused) if refused else None,
    )


def _print(summaries: Mapping[str, PipelineSummary], title: str, console: Console) -> None:
    """Two tables, so that both fit a narrow terminal: the methods, numbered, and their F1 by category."""
    console.print(title, markup=False, highlight=False)
    methods = _table("", "method", "F1", "tokens", "evidence", "recall", "refusal", "skipped")
    for number, (method, one) in enumerate(summaries.items(), start=1):
        recall, refusal = ("–" if value is None else f"{value:.3f}" for value in (one.recall, one.refusal_f1))
        tokens = (f"{one.tokens_per_question:.0f}", f"{one.evidence_tokens_per_question:.0f}")
        methods.add_row(str(number), method, f"{one.f1:.3f}", *tokens, recall, refusal, str(one.failed_steps))
    console.print(methods)
    console.print(
        "tokens: of all calls of a question, planning and answering; evidence: of what was shown; recall: share of gold rounds in it; "
        "refusal: F1 on questions without an answer, which the other columns leave out; skipped: steps that failed twice",
        highlight=False,
    )
    by_category = _table("F1 of method", "", *(str(number) for number in range(1, len(summaries) + 1)))
    for name in sorted({name for summary in summaries.values() for name in summary.f1_by_category}):
        found = [summary.f1_by_category.get(name) for summary in summaries.values()]
        by_category.add_row(name.replace("_", " "), "", *("–" if value is None else f"{value:.2f}" for value in found))
    console.print(by_category)


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < 2 else "right", no_wrap=True)
    return table
