"""The commands, by what they print and leave."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from models.cache.__main__ import main
from models.cache.calls import CallCache
from models.cache.contents import Filter, batches
from models.requests import content_key
from tests.models.calls import call


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cache of three calls: an old one, a new one, and one of another model."""
    monkeypatch.setattr("models.cache.__main__.console.width", 200)
    now = time.time()
    cache = CallCache(tmp_path / "c.sqlite", mode="read_write")
    cache.put([call("old", created=now - 40 * 86_400), call("new", created=now), call("[red]odd", model_id="m2")], replace=False)
    cache.close()
    return str(tmp_path / "c.sqlite")


def left(where: str) -> list[str]:
    return sorted(one.reply for some in batches(CallCache(where, mode="read_only"), only=Filter()) for one in some)


def test_inspect_counts_by_model_and_task(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--cache", where, "--newest", "1"]) == 0
    out = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    # two calls of 7 tokens in, 4 of them of images, 1 out, and half a second each
    assert [(row[:3], row[4:8]) for row in rows] == [
        (["echo-1", "answer", "2"], ["14", "8", "2", "1.0"]),
        (["m2", "answer", "1"], ["7", "4", "1", "0.5"]),
    ]
    assert "3 calls" in out
    assert call("new").key[:12] in out and call("old").key[:12] not in out


def test_inspect_shows_one_call_whole(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    key = call("[red]odd", model_id="m2").key
    assert main(["inspect", "--cache", where, "--key", key[:20]]) == 0
    out = capsys.readouterr().out
    assert key in out and "Say [red]odd." in out and out.rstrip().endswith("[red]odd")
    assert main(["inspect", "--cache", where, "--key", "%"]) == 1
    assert "no call has a key that begins with %" in capsys.readouterr().out


def test_prune_removes_what_meets_every_condition(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    age = ["prune", "--cache", where, "--older-than", "30d"]
    assert main([*age, "--model", "echo-1"]) == 0
    assert "1 call(s) would be removed; add --yes" in capsys.readouterr().out
    assert left(where) == ["[red]odd", "new", "old"]
    assert main([*age, "--model", "echo-1", "--yes"]) == 0
    assert left(where) == ["[red]odd", "new"]
    assert main(["prune", "--cache", where, "--key", call("new").key, "--yes"]) == 0
    assert left(where) == ["[red]odd"]


def test_prune_without_a_condition_removes_nothing(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prune", "--cache", where, "--yes"]) == 1
    assert "needs --model, --older-than or --key" in capsys.readouterr().out
    assert len(left(where)) == 3


def test_export_and_import(where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--cache", where, "--model", "echo-1", str(tmp_path / "c.parquet")]) == 0
    assert main(["import", "--cache", str(tmp_path / "new.sqlite"), str(tmp_path / "c.parquet")]) == 0
    out = capsys.readouterr().out
    assert "2 calls written" in out and "2 calls read, 2 new" in out
    assert left(str(tmp_path / "new.sqlite")) == ["new", "old"]


@pytest.mark.parametrize("command", [["inspect"], ["export", "x.parquet"], ["prune", "--model", "m", "--yes"]])
def test_a_cache_that_is_not_there_is_told_and_not_made(tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--cache", str(tmp_path / "none.sqlite")]) == 1
    assert capsys.readouterr().out.count("\n") == 1
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1y"])
def test_an_age_is_a_number_and_a_unit(where: str, age: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["prune", "--cache", where, f"--older-than={age}"])
    assert "write 12h, 30d or 8w" in capsys.readouterr().err


def test_it_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "models.cache", "--help"], capture_output=True, text=True, check=True)
    assert all(command in done.stdout for command in ("inspect", "export", "import", "prune"))


def test_the_request_that_is_kept_is_the_one_the_key_is_of(where: str) -> None:
    calls = [one for some in batches(CallCache(where, mode="read_only"), only=Filter()) for one in some]
    assert all(content_key(one.request) == one.key for one in calls)
