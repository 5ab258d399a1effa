"""evaluate.py refuses what would give numbers that mean something else."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.entry.test_train import CHECKOUT, call


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluate")


@pytest.fixture(scope="module")
def run(root: Path) -> Path:
    done = call("train.py", root, root / "run", "algo.epochs=1")
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "run"


def evaluate(run: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "evaluate.py", f"run={run}", f"hydra.run.dir={folder}", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["memory.forms=[image,summary,caption,view,raw]"], "the selector was trained on ['raw', 'summary'"),
        (["memory.forms=[image,summary,caption,view,raw]", "use=checkpoint"], "the selector was trained on ['raw', 'summary'"),
        (["policy.threshold=0.9"], "has its policy settings inside"),
        (["experiment=tiny"], "experiment=tiny: evaluate.py knows"),
        (["use=weights"], "use=weights must be one of artefact, checkpoint"),
    ],
)
def test_overrides_that_would_mislead_are_refused(run: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = evaluate(run, tmp_path, *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_changed_data_is_refused(run: Path, root: Path, tmp_path: Path) -> None:
    (dialogue,) = (root / "sample" / "dialog").glob("*.json")
    kept = dialogue.read_text()
    try:
        content = json.loads(kept)
        content["human-annotated QAs"][0]["answer"] = "something else"
        dialogue.write_text(json.dumps(content))
        done = evaluate(run, tmp_path)
        assert (done.returncode, "has changed since" in done.stderr) == (1, True), done.stdout + done.stderr
    finally:
        dialogue.write_text(kept)


def test_an_unfinished_run_and_damaged_settings_are_told(run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    (broken / "settings.json").write_text('{"seed": 0')
    done = evaluate(broken, tmp_path / "a")
    assert (done.returncode, "does not hold a run's settings" in done.stderr) == (1, True)
    shutil.copy(run / "settings.json", broken)
    shutil.rmtree(broken / "selector")
    done = evaluate(broken, tmp_path / "b")
    assert (done.returncode, "cannot be read" in done.stderr) == (1, True)


def test_recall_is_measured(run: Path, root: Path, tmp_path: Path) -> None:
    done = call("evaluate.py", root, tmp_path, "mode=recall")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no interval from one history" in done.stdout
    assert json.loads((tmp_path / "recall.json").read_text())["n_histories"] == 1


def test_a_refused_resume_leaves_the_run_as_it_was(run: Path, root: Path) -> None:
    before = {name: (run / name).read_bytes() for name in ("settings.json", "manifest.json", "split.json")}
    done = call("train.py", root, run, "algo.epochs=1", "policy.threshold=0.9")
    assert (done.returncode, "policy.threshold" in done.stderr) == (1, True), done.stderr
    assert before == {name: (run / name).read_bytes() for name in before}
