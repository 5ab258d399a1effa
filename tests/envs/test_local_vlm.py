"""The whole job with a vision-language model in this process: build, train two epochs, evaluate, on a cut of the sample.

The model is tiny and untrained, so its answers say nothing; that every call goes through its tokenizer, vision tower and
constrained decoding, and that every part after it holds, is what is shown.
"""

import logging
import time
from pathlib import Path

import torch

from data.images import load_picture
from envs.evaluation.comparison import summarise
from envs.run_folder import LEDGER
from envs.settings import Qwen3VLVlm
from envs.workbench import open_workbench
from models.ledger import read_ledger
from tests.models.tiny_qwen import build_tiny_qwen3_vl
from tests.vlm import needs_vlm, pretrained
from tests.whole_job import MAX_SIDE, METHODS, N_HISTORIES, N_QUESTIONS, cut_sample, small_settings, train_and_evaluate

logger = logging.getLogger(__name__)
pytestmark = needs_vlm
SECONDS = 300  # of processor time: what else the machine does is not counted


def test_build_train_and_evaluate(tmp_path: Path) -> None:
    started = time.process_time()
    cut_sample(tmp_path / "sample")
    local = pretrained(build_tiny_qwen3_vl(tmp_path / "model"), batch_size=32)
    vlm = Qwen3VLVlm(name="qwen3_vl", batch_tokens=40_000, **vars(local))
    settings = small_settings(tmp_path / "sample", tmp_path / "cache", vlm)
    patches: list[int] = []

    def count(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], _output: object) -> None:
        if type(module).__name__ == "Qwen3VLVisionModel":
            patches.append(len(inputs[0]))

    hook = torch.nn.modules.module.register_module_forward_hook(count)
    seconds: dict[str, float] = {"prepared": time.process_time() - started}

    workbench = open_workbench(settings, folder=tmp_path / "run")
    seconds["built"] = time.process_time() - started
    assert len(workbench.dataset.histories) == N_HISTORIES and len(workbench.dataset.questions) == N_HISTORIES * N_QUESTIONS
    images = [image for history in workbench.dataset.histories for image in history.images]
    assert images and all(max(load_picture(image.path).pixels().size) <= MAX_SIDE for image in images if image.path)

    rows = train_and_evaluate(workbench, tmp_path / "run")
    hook.remove()
    seconds["evaluated"] = time.process_time() - started
    logger.info("processor seconds since the start: %s", {name: round(value, 1) for name, value in seconds.items()})

    summaries = summarise(rows, metric_profile=settings.reward.metric_profile, answerer=workbench.door.backend.model_id)
    assert [*summaries] == METHODS and len(rows) == 3 * N_QUESTIONS
    assert all(row.answer and row.total_tokens > 0 for row in rows)
    assert summaries["all-forms"].evidence_tokens_per_question > summaries["summary-only"].evidence_tokens_per_question > 0
    paid = [entry for entry in read_ledger(tmp_path / "run" / LEDGER) if not entry.hit]
    by_task = {task: sum(entry.task == task for entry in paid) for task in ("memorise", "caption", "ground", "answer")}
    assert by_task["caption"] == by_task["ground"] == len(images) and by_task["memorise"] >= N_HISTORIES and by_task["answer"] >= 3 * 8
    # Four 16-pixel patches are one token: every picture of every paid call went through the vision tower, once.
    assert sum(patches) == 4 * sum(entry.image_tokens for entry in paid) > 0
    assert len({entry.key for entry in paid}) == len(paid)
    assert seconds["evaluated"] < SECONDS
