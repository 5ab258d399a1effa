"""The entry files, run as a user runs them on one small history, and judged by what they leave."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

CHECKOUT = Path(__file__).resolve().parents[2]
METHODS = 31 + 5  # every uniform subset; selector, random, no-memory, summary-only, all-forms


def command(entry: str, root: Path, run: Path, *arguments: str) -> list[str]:
    where = [f"data.root={root}/sample", f"cache={root}/cache", f"hydra.run.dir={run}"]
    return [sys.executable, entry, "experiment=tiny", *where, *arguments]


def call(entry: str, root: Path, run: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(entry, root, run, *arguments), cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("entry")


@pytest.fixture(scope="module")
def first(root: Path) -> tuple[Path, str]:
    """A finished run and what it printed."""
    done = call("train.py", root, root / "first")
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "first", done.stdout


def test_the_table_and_the_files_are_there(first: tuple[Path, str]) -> None:
    run, printed = first
    for line in ("selector", "summary-only", "all-forms", "random", "grounded views:", "embedded engine", f"run       {run}"):
        assert line in printed
    summary = json.loads((run / "summary.json").read_text())
    assert len(summary) == METHODS
    names = {
        "f1",
        "evidence_tokens_per_question",
        "tokens_per_question",
        "recall",
        "retrieval_recall",
        "n",
        "split",
        "metric_profile",
        "answerer",
    }
    assert all(names <= method.keys() for method in summary.values())
    assert summary["all-forms"]["evidence_tokens_per_question"] > summary["summary-only"]["evidence_tokens_per_question"] > 0
    for name in (
        "settings.json",
        "manifest.json",
        "split.json",
        "frontier.png",
        ".hydra/config.yaml",
        "checkpoints/metrics.jsonl",
        "selector/selector.onnx",
    ):
        assert (run / name).stat().st_size > 0
    manifest = json.loads((run / "manifest.json").read_text())
    assert set(manifest["seeds"]) == {"run", "split", "sample"} and len(manifest["data_hash"]) == 64 and manifest["versions"]["torch"]


def test_there_is_one_row_per_question_and_method(first: tuple[Path, str]) -> None:
    run, _ = first
    rows = pq.read_table(run / "rows.parquet").to_pylist()
    split = json.loads((run / "split.json").read_text())
    assert len(rows) == METHODS * len(split["test"])
    for row in rows:
        forms = sum(row[f"tokens_{form}"] for form in ("raw", "summary", "caption", "view", "image"))
        assert row["evidence_tokens"] == forms + row["heading_tokens"]
        assert len(row["composition"]) == len(row["retrieved"]) <= 7
    summary = json.loads((run / "summary.json").read_text())
    raw = [row for row in rows if row["method"] == "raw" and not row["is_refusal"]]
    assert summary["raw"]["f1"] == pytest.approx(np.mean([row["f1"] for row in raw]))


def test_the_same_seed_gives_the_same_weights_and_tables(first: tuple[Path, str], root: Path) -> None:
    run, _ = first
    assert call("train.py", root, root / "again").returncode == 0
    for name in ("summary.json", "validation.json", "checkpoints/metrics.jsonl", "selector/selector.onnx"):
        assert (root / "again" / name).read_bytes() == (run / name).read_bytes(), name
    assert pq.read_table(root / "again" / "rows.parquet").equals(pq.read_table(run / "rows.parquet"))
    assert call("train.py", root, root / "other", "seed=1").returncode == 0
    weights = [load_file(root / name / "checkpoints" / "best.safetensors") for name in ("first", "other")]
    assert any(not np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize("use", ["artefact", "checkpoint"])
def test_evaluation_selects_as_training_did(first: tuple[Path, str], root: Path, use: str) -> None:
    run, _ = first
    folder = root / f"evaluated-{use}"
    done = subprocess.run(
        [sys.executable, "evaluate.py", f"run={run}", f"use={use}", f"hydra.run.dir={folder}"],
        cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "summary.json").read_bytes() == (run / "summary.json").read_bytes()
    assert pq.read_table(folder / "rows.parquet").equals(pq.read_table(run / "rows.parquet"))


def test_a_killed_run_continues_to_the_same_end(first: tuple[Path, str], root: Path) -> None:
    run, _ = first
    killed = root / "killed"
    process = subprocess.Popen(command("train.py", root, killed), cwd=CHECKOUT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoint = killed / "checkpoints" / "resume.zip"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert checkpoint.exists()
    assert not (killed / "summary.json").exists()
    done = call("train.py", root, killed)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("summary.json", "checkpoints/metrics.jsonl", "selector/selector.onnx"):
        assert (killed / name).read_bytes() == (run / name).read_bytes(), name


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (
            ["reward.cost_weight=-1", "memory.k_ret=0", "memory.forms=[raw,smell]"],
            ["3 setting(s)", "reward.cost_weight=-1", "memory.k_ret=0", "smell"],
        ),
        (["reward.metric_profile=bleu"], ["reward.metric_profile='bleu'", "budgetmem, mem_gallery, memeye"]),
        (["data=mem_gallery", "data.root=/nowhere", "data.sample=null"], ["/nowhere", "does not exist"]),
    ],
)
def test_bad_settings_are_told_at_once_and_nothing_is_trained(root: Path, arguments: list[str], messages: list[str]) -> None:
    run = root / "bad"
    done = call("train.py", root, run, *arguments)
    assert done.returncode == 1
    for message in messages:
        assert message in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (run / "checkpoints").exists()


def test_an_unknown_setting_or_option_is_named(root: Path) -> None:
    done = call("train.py", root, root / "bad", "reward.cost_wieght=1")
    assert done.returncode != 0 and "cost_wieght" in done.stderr
    done = call("train.py", root, root / "bad", "algo=sac")
    assert done.returncode != 0 and "paper" in done.stderr and "ppo" in done.stderr


def test_help_explains_itself() -> None:
    for entry, words in (("train.py", ["usage:", "cost_weight", "algo: paper, planner, ppo"]), ("evaluate.py", ["usage:", "mode=recall"])):
        done = subprocess.run([sys.executable, entry, "--help"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0
        for word in words:
            assert word in done.stdout


def test_inference_is_light(first: tuple[Path, str]) -> None:
    run, _ = first
    code = (
        "import sys, numpy as np; from policies.inference import Selector\n"
        f"selector = Selector.load({str(run / 'selector')!r})\n"
        "bits = selector.select(np.eye(384, dtype=np.float32)[0], np.eye(384, dtype=np.float32)[:7], np.ones((7, 5), bool))\n"
        "assert bits.shape == (7, 5)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'torch', 'stable_baselines3', 'gymnasium'}))"
    )
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=run, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
