"""Judges the answers that an evaluation stored, with whatever model stands behind the door.

``judged.parquet``  the judged rows' method, ids, category, levels (raw and snapped) and reasons
``judge.json``      means by method; refusal questions apart, as everywhere
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

from data.history import Question
from envs.errors import RunError
from envs.evaluation.records import write_json, write_records
from models.requests import Reply, Request
from models.tasks.judge import Judged, JudgeInputs, judge_request, parse_judge

_BATCH = 64


@dataclass(frozen=True)
class JudgedRow:
    """One answer with its judgement."""

    method: str
    history_id: str
    question_id: str
    category: str
    is_refusal: bool
    raw: float
    snapped: float
    reason: str


@dataclass(frozen=True)
class JudgeSummary:
    """One method's means; refusal questions are only in the last two. ``answerer`` and ``judge`` name the models."""

    raw: float | None
    snapped: float | None
    n: int
    refusal_snapped: float | None
    n_refusals: int
    judge: str


def read_answers(path: Path, methods: Sequence[str]) -> list[dict[str, Any]]:
    """The stored rows of some methods, as written by `envs.evaluation.records`.

    Raises:
        RunError: there are no such rows; the message says which methods there are.
    """
    columns = ["method", "history_id", "question_id", "category", "is_refusal", "answer", "gold"]
    try:
        rows: list[dict[str, Any]] = pq.read_table(path, columns=columns).to_pylist()
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path} holds no answers; run= must name the folder of a finished run or evaluation ({error})") from error
    found = list(dict.fromkeys(row["method"] for row in rows))
    if unknown := [method for method in methods if method not in found]:
        raise RunError(f"{path} has no method {', '.join(unknown)}; it has {', '.join(found)}; choose among these with judged=[...]")
    return [row for row in rows if row["method"] in methods]


def judge_answers(
    rows: Sequence[Mapping[str, Any]],
    *,
    questions: Sequence[Question],
    generate: Callable[[Sequence[Request]], list[Reply]],
    judge: str,
    folder: Path,
    console: Console,
) -> dict[str, JudgeSummary]:
    """Judge each row, one call an answer, write the two files and print the means.

    Args:
        rows: from `read_answers`.
        questions: the dataset's, for the questions' texts.
        generate: the door; an answer that was judged before is not paid for again.
        judge: the judging model's id.
        folder: where the files go.
        console: for the progress bar and the table.

    Raises:
        RunError: a row's question is not in the dataset.
        models.errors.ReplyError: a reply without a judgement.
    """
    texts = {(question.history_id, question.id): question.text for question in questions}
    if missing := {row["question_id"] for row in rows if (row["history_id"], row["question_id"]) not in texts}:
        raise RunError(f"{len(missing)} judged questions are not in the dataset, for example {min(missing)}; name the data of the run")
    judged: list[JudgedRow] = []
    for start in track(range(0, len(rows), _BATCH), "judge", console=console, transient=True):
        batch = rows[start : start + _BATCH]
        items = [Judged(texts[row["history_id"], row["question_id"]], row["gold"], row["answer"]) for row in batch]
        for row, reply in zip(batch, generate([judge_request(JudgeInputs((item,))) for item in items]), strict=True):
            (found,) = parse_judge(reply.text, 1)
            kept = {name: row[name] for name in ("method", "history_id", "question_id", "category", "is_refusal")}
            judged.append(JudgedRow(**kept, raw=found.raw, snapped=found.snapped, reason=found.reason))
    write_records(folder / "judged.parquet", [asdict(row) for row in judged])
    summaries = {
        method: _summary([row for row in judged if row.method == method], judge) for method in dict.fromkeys(r.method for r in judged)
    }
    write_json(folder / "judge.json", {method: asdict(summary) for method, summary in summaries.items()})
    _print(summaries, judge, console)
    return summaries


def _summary(rows: Sequence[JudgedRow], judge: str) -> JudgeSummary:
    asked, refused = [row for row in rows if not row.is_refusal], [row for row in rows if row.is_refusal]

    def mean(values: list[float]) -> float | None:
        return fmean(values) if values else None

    return JudgeSummary(
        raw=mean([row.raw for row in asked]),
        snapped=mean([row.snapped for row in asked]),
        n=len(asked),
        refusal_snapped=mean([row.snapped for row in refused]),
        n_refusals=len(refused),
        judge=judge,
    )


def _print(summaries: Mapping[str, JudgeSummary], judge: str, console: Console) -> None:
    table = Table(title=f"judged by {judge}", title_justify="left", box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column("method", no_wrap=True)
    for name in ("five levels", "snapped to three", "questions", "refusals snapped", "refusals"):
        table.add_column(name, justify="right")
    for method, one in summaries.items():
        cells = ["–" if value is None else f"{value:.3f}" for value in (one.raw, one.snapped, one.refusal_snapped)]
        table.add_row(method, cells[0], cells[1], str(one.n), cells[2], str(one.n_refusals))
    console.print(table)
