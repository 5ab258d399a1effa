from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from models.errors import BackendError, LedgerError
from models.ledger import Cost, Entry, Ledger, read_ledger, summarise
from models.prices import Price, PriceList
from models.requests import Reply, Usage
from tests.models.calls import request

REPLY = Reply("k" * 64, "text", Usage(100, 10, 60), 0.5, first_token_seconds=0.125)
ENTRY = Entry("r", 0.0, "answer", "answer", "m", "k", 100, 10, 60, 0.5, None, False)


def test_entries_come_back_and_a_resumed_run_appends(tmp_path: Path) -> None:
    path = tmp_path / "run" / "ledger.jsonl"
    ledger = Ledger(path, run="r\n1")
    ledger.add("m", [(request("a"), REPLY), (request("b"), replace(REPLY, hit=True, first_token_seconds=None))])
    ledger.close()
    Ledger(path, run="r\n1").add("m2", [(request("c"), REPLY)])
    entries = list(read_ledger(path))
    assert [(entry.run, entry.model, entry.hit, entry.first_token_seconds) for entry in entries] == [
        ("r\n1", "m", False, 0.125),
        ("r\n1", "m", True, None),
        ("r\n1", "m2", False, 0.125),
    ]
    one = entries[0]
    assert (one.phase, one.task, one.key, one.input_tokens, one.output_tokens, one.image_tokens, one.seconds) == (
        "answer",
        "answer",
        "k" * 64,
        100,
        10,
        60,
        0.5,
    )
    assert one.at == pytest.approx(path.stat().st_mtime, abs=60)


def test_a_line_that_a_killed_process_left_is_passed_over_and_then_removed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path, run="r").add("m", [(request("a"), REPLY)])
    with path.open("ab") as file:
        file.write(b'{"run": "r", "at": 17')
    assert len(list(read_ledger(path))) == 1
    Ledger(path, run="r").add("m", [(request("b"), REPLY)])
    assert len(list(read_ledger(path))) == 2


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"hit": false', '"hit": 0', "hit=0: Input should be a valid boolean"),
        ('"input_tokens": 100', '"input_tokens": -1', "input_tokens=-1: Input should be greater than or equal to 0"),
        ('"input_tokens": 100', '"input_tokens": true', "input_tokens=True: Input should be a valid integer"),
        ('"input_tokens": 100', '"input_tokens": 1.5', r"input_tokens=1\.5: Input should be a valid integer"),
        ('"seconds": 0.5', '"seconds": NaN', "seconds=nan: Input should be a finite number"),
        ('"phase": "answer"', '"phase": "x"', "phase='x': Input should be 'build', 'plan', 'answer' or 'judge'"),
        ('"run": "r", ', "", "run=.*: Field required"),
        ('"run": "r", ', '"run": "r", "more": 1, ', "more=1: Unexpected keyword argument"),
        ('{"run"', '["run"', "line=.*: Invalid JSON"),
        ('{"run"', "[" * 10_000 + '{"run"', "line=.*: Invalid JSON"),
    ],
)
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path, run="r").add("m", [(request("a"), REPLY), (request("b"), REPLY)])
    first, second = path.read_text().splitlines(keepends=True)
    path.write_text(first + second.replace(old, new))
    with pytest.raises(LedgerError, match=rf"ledger\.jsonl, line 2 is no entry .*{problem}"):
        list(read_ledger(path))


def test_a_ledger_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(tmp_path / "file" / "ledger.jsonl", run="r")
    with pytest.raises(LedgerError, match="cannot be read"):
        list(read_ledger(tmp_path / "none.jsonl"))


def prices() -> PriceList:
    return PriceList(Path("prices.yaml"), date(2031, 1, 1), {"m": Price(2.0, 10.0), "n": Price(1.0, 1.0)})


def sums(cost: Cost) -> tuple[object, ...]:
    return (cost.n_calls, cost.input_tokens, cost.output_tokens, cost.image_tokens, cost.seconds, cost.usd)


def test_build_and_query_are_summed_apart() -> None:
    entries = [
        replace(ENTRY, phase="build", task="caption"),
        replace(ENTRY, phase="build", task="caption", hit=True),
        ENTRY,
        replace(ENTRY, phase="plan", task="plan", model="n", image_tokens=0),
        replace(ENTRY, hit=True),
    ]
    costs = summarise(entries, prices=prices())
    # one call of m: 100 in at $2 and 10 out at $10 a million = $0.0003; of n: 110 at $1 = $0.00011
    assert sums(costs["build"].paid) == (1, 100, 10, 60, 0.5, pytest.approx(0.0003))
    assert sums(costs["build"].total) == (2, 200, 20, 120, 1.0, pytest.approx(0.0006))
    assert sums(costs["query"].paid) == (2, 200, 20, 60, 1.0, pytest.approx(0.00041))
    assert sums(costs["query"].total) == (3, 300, 30, 120, 1.5, pytest.approx(0.00071))
    assert (costs["query"].n_hits, costs["query"].total.text_tokens) == (1, 210)  # 300 − 120 + 30
    assert costs["judge"].total == costs["judge"].paid == Cost(0, 0, 0, 0, 0, 0)


def test_without_prices_nothing_has_a_price() -> None:
    assert summarise([ENTRY], prices=None)["query"].total.usd is None


def test_a_model_without_a_price_is_an_error() -> None:
    with pytest.raises(BackendError, match="no price for model 'free'"):
        summarise([ENTRY, replace(ENTRY, model="free", hit=True)], prices=prices())
