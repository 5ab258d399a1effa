"""Splits: which questions train, validate and test, by history (no leakage) or by question, stored as id lists.

The ids (of histories or of questions) are sorted by the SHA-256 of the seed followed by the id. With n ids and
k = max(1, round(0.2 n)), the first n - 2k train, the next k validate and the last k test.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

from data.errors import DatasetError, SplitError
from data.history import Dataset, Question
from data.loaders.reading import Findings, read_json

HELD_OUT_SHARE = 0.2
PARTS = ("train", "validation", "test")
MIN_IDS = 3


def split_questions(dataset: Dataset, by: Literal["history", "question"], seed: int) -> dict[str, tuple[Question, ...]]:
    """Assign every question to "train", "validation" or "test"; inside a part the dataset's order is kept.

    By history, only histories that have questions are counted, so that no part is empty.

    Raises:
        SplitError: fewer than three histories (or questions), or an unknown value of ``by``.
    """
    if by == "history":
        group = {question.id: question.history_id for question in dataset.questions}
    elif by == "question":
        group = {question.id: question.id for question in dataset.questions}
    else:
        raise SplitError(f"unknown split {by!r}; choose data.split_by=history or data.split_by=question")
    ids = sorted(set(group.values()), key=lambda id_: (hashlib.sha256(f"{seed}{id_}".encode()).hexdigest(), id_))
    if len(ids) < MIN_IDS:
        repair = "use data.split_by=question or add histories" if by == "history" else "add questions"
        kind = "histories with questions" if by == "history" else "questions"
        raise SplitError(f"{dataset.name}: {len(ids)} {kind}, but a split by {by} needs at least {MIN_IDS}; {repair}")
    k = max(1, round(HELD_OUT_SHARE * len(ids)))
    members = dict(zip(PARTS, (set(ids[: -2 * k]), set(ids[-2 * k : -k]), set(ids[-k:])), strict=True))
    return {part: tuple(question for question in dataset.questions if group[question.id] in members[part]) for part in PARTS}


def without_refusals(questions: Iterable[Question], refusal_categories: frozenset[str]) -> tuple[Question, ...]:
    """Leave out the questions whose category always has a refusal as its gold answer (`Dataset.refusal_categories`)."""
    return tuple(question for question in questions if question.category not in refusal_categories)


@dataclass(frozen=True)
class Split:
    """The question ids of each part, as stored with a run and reused by its resumption and evaluation."""

    by: Literal["history", "question"]
    seed: int
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    @classmethod
    def of(cls, dataset: Dataset, *, by: Literal["history", "question"], seed: int) -> Self:
        """Split a dataset with `split_questions` and keep the ids."""
        parts = split_questions(dataset, by, seed)
        return cls(by, seed, **{part: tuple(question.id for question in parts[part]) for part in PARTS})

    @property
    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """The question ids by part."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def questions(self, dataset: Dataset) -> dict[str, tuple[Question, ...]]:
        """Look the questions of each part up in the dataset, in the stored order.

        Raises:
            SplitError: the split names questions that the dataset lacks, or lacks questions that the dataset has.
        """
        by_id = {question.id: question for question in dataset.questions}
        named = {question_id for part in self.ids.values() for question_id in part}
        wrong = []
        if unknown := named - by_id.keys():
            wrong.append(f"{len(unknown)} question(s) of the split are not in the dataset, such as {min(unknown)!r}")
        if unplaced := by_id.keys() - named:
            wrong.append(f"{len(unplaced)} question(s) of the dataset are in no part, such as {min(unplaced)!r}")
        if wrong:
            repair = "use the data it was made from, or make a new split"
            raise SplitError(f"the split does not fit {dataset.name}: {'; '.join(wrong)}; {repair}")
        return {part: tuple(by_id[question_id] for question_id in ids) for part, ids in self.ids.items()}

    def save(self, path: Path) -> None:
        """Write the split as JSON, aside first, so that a half-written file never stands at ``path``."""
        aside = path.with_name(f"{path.name}.partial")
        aside.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        os.replace(aside, path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a split written by `save`.

        Raises:
            DatasetError: the file is not such a JSON file, or names a question twice; it lists every problem.
        """
        findings = Findings("")
        record = read_json(path, findings)
        if record is None:
            raise DatasetError(path, findings.problems)
        record.name = "split"
        by, seed = record.fields.get("by"), record.fields.get("seed")
        parts = {part: tuple(record.texts(part, meaning="the ids of its questions") or ()) for part in PARTS}
        if by not in ("history", "question"):
            findings.note("split", "by", f"is {by!r}", 'write "history" or "question"')
        if not isinstance(seed, int) or isinstance(seed, bool):
            findings.note("split", "seed", f"is {seed!r}", "write the integer seed of the split")
        first_part: dict[str, str] = {}
        for part, ids in parts.items():
            for question_id in ids:
                if question_id in first_part:
                    findings.note("split", part, f"names {question_id!r}, already in {first_part[question_id]}", "name each question once")
                elif question_id:
                    first_part[question_id] = part
        if findings.problems:
            raise DatasetError(path, findings.problems)
        assert by in ("history", "question") and isinstance(seed, int)  # as just checked; mypy cannot follow the notes
        return cls(by, seed, **parts)
