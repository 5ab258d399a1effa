"""The whole job with a vision-language model in this process: build, train two epochs, evaluate, on a cut of the sample.

The model is tiny and untrained, so its answers say nothing; that every call goes through its tokenizer, vision tower and
constrained decoding, and that every part after it holds, is what is shown.
"""

import json
import logging
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from data.images import load_picture
from data.sample.generate import generate_sample
from envs.evaluation.comparison import compare, summarise
from envs.evaluation.records import Row
from envs.settings import Qwen3VLVlm, default_settings
from envs.training import export, open_training
from envs.workbench import LEDGER, open_workbench
from models.ledger import read_ledger
from planners.composers import Composer, Uniform
from policies.inference import Selector
from tests.models.tiny_qwen import build_tiny_qwen3_vl
from tests.vlm import needs_vlm, pretrained

logger = logging.getLogger(__name__)
pytestmark = needs_vlm
N_HISTORIES, N_QUESTIONS, MAX_SIDE = 3, 8, 256
SECONDS = 300


def cut_sample(root: Path) -> None:
    """The smallest sample, with 8 of each history's 20 questions and pictures of at most 256 pixels a side."""
    generate_sample(root, seed=0, n_histories=N_HISTORIES, n_questions=20)
    for path in (root / "dialog").glob("*.json"):
        history = json.loads(path.read_text(encoding="utf-8"))
        asked = history["human-annotated QAs"]
        history["human-annotated QAs"] = [asked[place] for place in np.linspace(0, len(asked) - 1, N_QUESTIONS).astype(int)]
        path.write_text(json.dumps(history), encoding="utf-8")
    for path in root.rglob("*.png"):
        with Image.open(path) as image:
            small = image.convert("RGB")
        small.thumbnail((MAX_SIDE, MAX_SIDE))
        small.save(path)


def test_build_train_and_evaluate(tmp_path: Path) -> None:
    started = time.perf_counter()
    cut_sample(tmp_path / "sample")
    settings = default_settings(
        data={"root": tmp_path / "sample", "sample": None},
        cache=tmp_path / "cache",
        env={"n_envs": 4},
        algo={"epochs": 2, "minibatch_size": 4},
        logger={"tensorboard": False},
    )
    local = pretrained(build_tiny_qwen3_vl(tmp_path / "model"), batch_size=32)
    settings = settings.model_copy(update={"vlm": Qwen3VLVlm(name="qwen3_vl", batch_tokens=40_000, **vars(local))})
    patches: list[int] = []

    def count(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], _output: object) -> None:
        if type(module).__name__ == "Qwen3VLVisionModel":
            patches.append(len(inputs[0]))

    hook = torch.nn.modules.module.register_module_forward_hook(count)
    seconds: dict[str, float] = {"prepared": time.perf_counter() - started}

    workbench = open_workbench(settings, folder=tmp_path / "run")
    seconds["built"] = time.perf_counter() - started
    assert len(workbench.dataset.histories) == N_HISTORIES and len(workbench.dataset.questions) == N_HISTORIES * N_QUESTIONS
    images = [image for history in workbench.dataset.histories for image in history.images]
    assert images and all(max(load_picture(image.path).pixels().size) <= MAX_SIDE for image in images if image.path)

    policy = open_training(workbench, tmp_path / "run").run()
    exported = export(policy, workbench, tmp_path / "run")
    seconds["trained"] = time.perf_counter() - started

    forms = np.array(list(workbench.answerer.forms))
    methods: dict[str, Composer] = {
        "selector": Selector.load(exported, encoder_id=workbench.encoder.id),
        "all-forms": Uniform(np.ones(len(forms), np.bool_)),
        "summary-only": Uniform(forms == "summary"),
    }
    questions = workbench.questions("test", refusals=True)
    rows: list[Row] = []
    for method, composer in methods.items():
        rows += compare(method, composer, questions, workbench.answerer, split="test", refusals=workbench.dataset.refusal_categories)
    summaries = summarise(rows, metric_profile=settings.reward.metric_profile, answerer=workbench.door.backend.model_id)
    hook.remove()
    seconds["evaluated"] = time.perf_counter() - started
    logger.info("seconds since the start: %s", {name: round(value, 1) for name, value in seconds.items()})

    assert [*summaries] == [*methods] and len(rows) == 3 * N_QUESTIONS
    assert all(row.answer and row.total_tokens > 0 for row in rows)
    assert summaries["all-forms"].evidence_tokens_per_question > summaries["summary-only"].evidence_tokens_per_question > 0
    paid = [entry for entry in read_ledger(tmp_path / "run" / LEDGER) if not entry.hit]
    by_task = {task: sum(entry.task == task for entry in paid) for task in ("memorise", "caption", "ground", "answer")}
    assert by_task["caption"] == by_task["ground"] == len(images) and by_task["memorise"] >= N_HISTORIES and by_task["answer"] >= 3 * 8
    # Four 16-pixel patches are one token: every picture of every paid call went through the vision tower, once.
    assert sum(patches) == 4 * sum(entry.image_tokens for entry in paid) > 0
    assert len({entry.key for entry in paid}) == len(paid)
    assert seconds["evaluated"] < SECONDS
