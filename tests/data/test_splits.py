"""Splits: the rule, that nothing leaks, and stored id lists."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import DatasetError, SplitError
from data.history import Dataset, History, Question
from data.splits import Split, split_questions, without_refusals


def dataset_of(n_histories: int, n_questions: int) -> Dataset:
    histories = tuple(History(f"h{i}", ()) for i in range(n_histories))
    questions = tuple(
        Question(f"h{i}:{j}", f"h{i}", "?", "!", "AR" if j == 0 else "FR") for i in range(n_histories) for j in range(n_questions)
    )
    return Dataset("toy", histories, questions, frozenset({"AR"}))


@pytest.mark.parametrize(
    ("n", "sizes"),
    # k = max(1, round(n / 5)): 20 -> 4, 14 -> 2.8 -> 3, 10 -> 2, 4 -> 0.8 -> 1, 3 -> 0.6 -> 1, 7 -> 1.4 -> 1, 8 -> 1.6 -> 2
    [(20, (12, 4, 4)), (14, (8, 3, 3)), (10, (6, 2, 2)), (4, (2, 1, 1)), (3, (1, 1, 1)), (7, (5, 1, 1)), (8, (4, 2, 2))],
)
def test_sizes_by_history(n: int, sizes: tuple[int, int, int]) -> None:
    parts = split_questions(dataset_of(n, 2), "history", 0)
    assert tuple(len({question.history_id for question in part}) for part in parts.values()) == sizes
    assert list(parts) == ["train", "validation", "test"]


def test_order_is_by_sha256_of_seed_and_id() -> None:
    dataset = dataset_of(10, 1)
    ids = sorted((f"h{i}" for i in range(10)), key=lambda id_: hashlib.sha256(("7" + id_).encode()).hexdigest())
    parts = split_questions(dataset, "history", 7)
    assert {question.history_id for question in parts["train"]} == set(ids[:6])
    assert {question.history_id for question in parts["validation"]} == set(ids[6:8])
    assert {question.history_id for question in parts["test"]} == set(ids[8:])


def test_a_pinned_split() -> None:
    # printf 2h0 | sha256sum begins e05e, 2h1 c472, 2h2 b49a: ascending order is h2, h1, h0.
    split = Split.of(dataset_of(3, 1), by="history", seed=2)
    assert (split.train, split.validation, split.test) == (("h2:0",), ("h1:0",), ("h0:0",))


@given(st.integers(3, 12), st.integers(1, 4), st.integers(0, 1000), st.sampled_from(["history", "question"]))
def test_parts_are_a_partition_and_do_not_leak(n: int, m: int, seed: int, by: str) -> None:
    dataset = dataset_of(n, m)
    parts = split_questions(dataset, by, seed)  # type: ignore[arg-type]  # sampled literals
    together = [question for part in parts.values() for question in part]
    assert sorted(question.id for question in together) == sorted(question.id for question in dataset.questions)
    assert all(parts.values())
    if by == "history":
        owners = [{question.history_id for question in part} for part in parts.values()]
        assert sum(map(len, owners)) == n
    else:
        k = max(1, round(0.2 * n * m))
        assert (len(parts["validation"]), len(parts["test"])) == (k, k)
    for part in parts.values():  # the dataset's order
        assert [question for question in dataset.questions if question in part] == list(part)


def test_the_seed_matters() -> None:
    dataset = dataset_of(12, 1)
    assert len({Split.of(dataset, by="history", seed=seed).test for seed in range(5)}) > 1


def test_too_few_histories_proposes_the_other_split() -> None:
    with pytest.raises(
        SplitError, match=r"toy: 2 histories with questions, but .* at least 3; use data.split_by=question or add histories"
    ):
        split_questions(dataset_of(2, 9), "history", 0)
    assert len(split_questions(dataset_of(2, 9), "question", 0)["train"]) == 10  # 18 questions, k = round(3.6) = 4
    with pytest.raises(SplitError, match="toy: 2 questions, but"):
        split_questions(dataset_of(1, 2), "question", 0)


def test_histories_without_questions_do_not_count() -> None:
    dataset = dataset_of(3, 1)
    silent = Dataset(dataset.name, (*dataset.histories, History("mute", ())), dataset.questions)
    assert all(split_questions(silent, "history", 0).values())


def test_unknown_kind() -> None:
    with pytest.raises(SplitError, match=r"unknown split 'date'; choose data\.split_by=history or data\.split_by=question"):
        split_questions(dataset_of(3, 1), "date", 0)  # type: ignore[arg-type]  # on purpose


def test_refusals_are_left_out() -> None:
    dataset = dataset_of(1, 3)
    assert [question.id for question in without_refusals(dataset.questions, dataset.refusal_categories)] == ["h0:1", "h0:2"]
    assert len(without_refusals(dataset.questions, frozenset())) == 3


def test_a_stored_split_gives_the_same_questions(tmp_path: Path) -> None:
    dataset = dataset_of(5, 3)
    split = Split.of(dataset, by="history", seed=3)
    split.save(tmp_path / "split.json")
    loaded = Split.load(tmp_path / "split.json")
    assert loaded == split
    assert loaded.questions(dataset) == split_questions(dataset, "history", 3)
    assert [path.name for path in tmp_path.iterdir()] == ["split.json"]


def test_a_split_of_other_data_is_refused() -> None:
    split = Split.of(dataset_of(5, 3), by="history", seed=3)
    with pytest.raises(SplitError, match=r"does not fit toy: 5 question\(s\) of the split are not in the dataset, such as 'h0:2'"):
        split.questions(dataset_of(5, 2))
    with pytest.raises(SplitError, match=r"3 question\(s\) of the dataset are in no part, such as 'h5:0'"):
        split.questions(dataset_of(6, 3))


def test_damaged_split_files_name_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"by": "date", "seed": True, "train": ["a", 1], "validation": ["a"]}))
    with pytest.raises(DatasetError) as caught:
        Split.load(path)
    found = [(problem.field, problem.what) for problem in caught.value.problems]
    assert found == [
        ("train[1]", "is a number instead of a text"),
        ("test", "is missing"),
        ("by", "is 'date'"),
        ("seed", "is True"),
        ("validation", "names 'a', already in train"),
    ]
    path.write_text("{")
    with pytest.raises(DatasetError, match="line 1, column 2"):
        Split.load(path)
