"""``train.py env=planning`` as a user runs it on one small history, interrupted too; and ``evaluate.py`` on what it leaves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.entry.zygote import CHECKOUT, Finished, Zygote

RESULTS = ("summary.json", "traces.jsonl", "checkpoints/metrics.jsonl", "checkpoints/best.safetensors", "planner/planner.safetensors")


def arguments(root: Path, run: Path) -> list[str]:
    small = ["experiment=tiny", "env=planning", "memory=adamm", "env.n_envs=8", "algo.minibatch_size=8", "env.n_prefill=8"]
    return [*small, f"data.root={root}/sample", f"cache={root}/cache", f"hydra.run.dir={run}"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planner")


@pytest.fixture(scope="module")
def first(zygote: Zygote, root: Path) -> tuple[Path, Finished]:
    """A finished run and what it printed."""
    done = zygote.run(arguments(root, root / "first"), root / "output")
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "first", done


def test_the_planner_stands_beside_the_models_own_plans(first: tuple[Path, Finished]) -> None:
    run, done = first
    summary = json.loads((run / "summary.json").read_text())
    methods = ["learned planner", "model planner", "always search events", "always locate", "no tools"]
    assert list(summary) == methods
    for line in (*methods, "embedded engine", f"run       {run}"):
        assert line in done.stdout
    assert summary["no tools"]["evidence_tokens_per_question"] == 0 < summary["always locate"]["evidence_tokens_per_question"]
    for name in ("planner/planner.json", "planner/planner.onnx", "report.html", "manifest.json", "split.json", "costs.json"):
        assert (run / name).stat().st_size > 0
    split = json.loads((run / "split.json").read_text())
    assert len((run / "traces.jsonl").read_text().splitlines()) == len(methods) * len(split["test"])


def test_a_killed_run_continues_to_the_same_end(first: tuple[Path, Finished], zygote: Zygote, root: Path) -> None:
    run, _ = first
    again = root / "again"
    zygote.start(arguments(root, again), root / "output")
    zygote.wait_for((again / "checkpoints" / "resume.zip").exists)
    killed = zygote.kill()
    assert killed is not None and killed.returncode == -9 and not (again / "planner").exists()
    done = zygote.run(arguments(root, again), root / "output")
    assert done.returncode == 0 and "continuing after rollout" in done.stdout + done.stderr, done.stdout + done.stderr
    for name in RESULTS:
        assert (again / name).read_bytes() == (run / name).read_bytes(), name


def evaluate(run: Path, folder: Path, *more: str) -> Finished:
    command = [sys.executable, "evaluate.py", f"run={run}", f"hydra.run.dir={folder}", *more]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)


def test_evaluation_plans_as_training_did(first: tuple[Path, Finished], tmp_path: Path) -> None:
    run, _ = first
    done = evaluate(run, tmp_path / "evaluated")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "evaluated" / "summary.json").read_bytes() == (run / "summary.json").read_bytes()
    refused = evaluate(run, tmp_path / "refused", "use=checkpoint")
    assert refused.returncode == 1 and "a planner is evaluated as it was exported" in refused.stderr


def test_the_planner_needs_the_analytic_memory(zygote: Zygote, root: Path, tmp_path: Path) -> None:
    done = zygote.run([*arguments(root, tmp_path / "run"), "memory=hive"], tmp_path / "output")
    assert done.returncode == 1 and "memory=both" in done.stderr and "Traceback" not in done.stdout + done.stderr, done.stderr


def test_an_interrupted_run_says_how_to_go_on(first: tuple[Path, Finished], zygote: Zygote, root: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    zygote.start([*arguments(root, run), "algo.epochs=30", "seed=7"], tmp_path / "output")
    zygote.wait_for((run / "checkpoints" / "resume.zip").exists)
    zygote.interrupt()
    stopped = zygote.wait()
    assert stopped.returncode == 130 and "Traceback" not in stopped.stdout + stopped.stderr
    assert f"hydra.run.dir={run}" in stopped.stderr and "resume.zip" in stopped.stderr


def test_pipelines_take_a_selector_only(first: tuple[Path, Finished], tmp_path: Path) -> None:
    run, _ = first
    for named, problem in ((run, "has no selector"), (tmp_path / "absent", "is no folder")):
        done = evaluate(named, tmp_path / "out", "mode=pipelines", "memory=both")
        assert done.returncode == 1 and problem in done.stderr and "Traceback" not in done.stdout + done.stderr
