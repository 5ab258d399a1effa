"""One row per question and method: what was retrieved, shown, asked, answered and paid. Written as Parquet."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from envs.answering import Outcome
from envs.questions import PreparedQuestion


@dataclass(frozen=True)
class Row:
    """One question under one method.

    ``retrieved`` and ``composition`` run over the candidate memories in retrieval order: the episode's rounds, and
    the names of the forms it shows. Tokens are evidence tokens C(z), by form; ``total_tokens`` are the answer
    call's input and output. ``recall`` is None without gold rounds.
    """

    method: str
    split: str
    history_id: str
    question_id: str
    category: str
    is_refusal: bool
    retrieved: tuple[tuple[str, ...], ...]
    origins: tuple[str, ...]
    composition: tuple[tuple[str, ...], ...]
    request_key: str
    answer: str
    gold: str
    f1: float
    bleu1: float | None
    exact_match: bool | None
    recall: float | None
    retrieval_recall: float | None
    evidence_tokens: int
    heading_tokens: int
    form_tokens: dict[str, int]
    total_tokens: int


def make_row(method: str, split: str, item: PreparedQuestion, outcome: Outcome, *, forms: Sequence[str], refusals: frozenset[str]) -> Row:
    """The row of one outcome."""
    question = item.question
    return Row(
        method=method,
        split=split,
        history_id=question.history_id,
        question_id=question.id,
        category=question.category,
        is_refusal=question.category in refusals,
        retrieved=tuple(item.bank.episodes[candidate.episode].round_ids for candidate in item.candidates),
        origins=tuple(candidate.origin for candidate in item.candidates),
        composition=tuple(
            tuple(form for form, bit in zip(forms, bits, strict=True) if bit) for bits in outcome.composition[: len(item.candidates)]
        ),
        request_key=outcome.request_key,
        answer=outcome.answer,
        gold=question.answer,
        f1=outcome.f1,
        bleu1=outcome.bleu1,
        exact_match=outcome.exact_match,
        recall=outcome.recall,
        retrieval_recall=item.retrieval_recall,
        evidence_tokens=outcome.evidence.total,
        heading_tokens=outcome.evidence.headings,
        form_tokens={form: outcome.evidence.by_form.get(form, 0) for form in forms},
        total_tokens=outcome.total_tokens,
    )


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as Parquet, aside and renamed; form tokens become one column a form (``tokens_raw``, …)."""
    records = []
    for row in rows:
        record = asdict(row)
        tokens = record.pop("form_tokens")
        records.append(record | {f"tokens_{form}": n for form, n in tokens.items()})
    write_records(path, records)


def write_records(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write records of equal names as Parquet, aside and renamed."""
    aside = path.with_suffix(".partial")
    pq.write_table(pa.Table.from_pylist(list(records)), aside)
    os.replace(aside, path)


def write_json(path: Path, value: object) -> None:
    """Write a JSON file, aside and renamed."""
    aside = path.with_suffix(".partial")
    aside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, path)
