"""Evaluation of composers over a split, and the numbers of the comparison table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from envs.answering import Answerer, Outcome
from envs.evaluation.records import Row, make_row
from envs.questions import PreparedQuestion
from planners.composers import Composer

_BATCH = 64


def outcomes_of(composer: Composer, questions: Sequence[PreparedQuestion], answerer: Answerer) -> list[Outcome]:
    """Compose and answer every question, in batches."""
    outcomes: list[Outcome] = []
    for start in range(0, len(questions), _BATCH):
        batch = questions[start : start + _BATCH]
        bits = composer.select_batch(
            np.stack([item.query for item in batch]),
            np.stack([item.summaries for item in batch]),
            np.stack([item.available for item in batch]),
        )
        outcomes += answerer.answer(batch, bits)
    return outcomes


def compare(
    method: str, composer: Composer, questions: Sequence[PreparedQuestion], answerer: Answerer, *, split: str, refusals: frozenset[str]
) -> list[Row]:
    """One row per question for one method; ``refusals`` are the categories whose answer is a refusal."""
    outcomes = outcomes_of(composer, questions, answerer)
    return [
        make_row(method, split, item, outcome, forms=list(answerer.forms), refusals=refusals)
        for item, outcome in zip(questions, outcomes, strict=True)
    ]


@dataclass(frozen=True)
class Summary:
    """One method over one split; refusal questions are left out of every number but the last two.

    ``recall`` is over questions with gold rounds (None without any); tokens are means per question.
    """

    f1: float
    evidence_tokens_per_question: float
    tokens_per_question: float
    recall: float | None
    retrieval_recall: float | None
    n: int
    split: str
    metric_profile: str
    answerer: str
    refusal_f1: float | None
    n_refusals: int


def summarise(rows: Sequence[Row], *, metric_profile: str, answerer: str) -> dict[str, Summary]:
    """A `Summary` for each method of ``rows``, in their order."""
    summaries = {}
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        asked = [row for row in own if not row.is_refusal]
        refused = [row.f1 for row in own if row.is_refusal]
        summaries[method] = Summary(
            f1=fmean(row.f1 for row in asked),
            evidence_tokens_per_question=fmean(row.evidence_tokens for row in asked),
            tokens_per_question=fmean(row.total_tokens for row in asked),
            recall=_mean([row.recall for row in asked]),
            retrieval_recall=_mean([row.retrieval_recall for row in asked]),
            n=len(asked),
            split=asked[0].split,
            metric_profile=metric_profile,
            answerer=answerer,
            refusal_f1=fmean(refused) if refused else None,
            n_refusals=len(refused),
        )
    return summaries


def best_uniform(summaries: Mapping[str, Summary], names: Sequence[str]) -> str:
    """The best fixed composition: highest F1, then fewer evidence tokens."""
    return max(names, key=lambda name: (summaries[name].f1, -summaries[name].evidence_tokens_per_question))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
