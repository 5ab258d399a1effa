"""The whole job with a vision-language model in this process: build, train two epochs, evaluate, on a cut of the sample.

The model is tiny and untrained, so its answers say nothing; that every call goes through its tokenizer, vision tower and
constrained decoding, and that every part after it holds, is what is shown.
"""

import json
import logging
import time
from pathlib import Path

import numpy as np
from PIL import Image

from data.images import load_picture
from data.loaders.mem_gallery import load_mem_gallery
from data.sample.generate import generate_sample
from data.splits import Split
from envs.answering import Answerer
from envs.evaluation.comparison import compare, summarise
from envs.evaluation.records import Row
from envs.metrics.text import profile
from envs.settings import Settings, default_settings
from envs.training import export, train_selector
from envs.workbench import Workbench
from memory.bank import MemoryBank
from memory.build import build_bank
from memory.forms import forms_named
from models.cache.calls import CallCache
from models.door import Door
from models.encoders.cached import CachedTextEncoder
from models.encoders.minilm import MiniLM
from models.ledger import Ledger, read_ledger
from models.qwen3_vl.backend import Qwen3VL, Qwen3VLSettings
from models.store import ContentStore
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


def open_parts(settings: Settings, backend: Qwen3VL) -> Workbench:
    """What `envs.workbench.open_workbench` opens, with a given backend."""
    dataset = load_mem_gallery(settings.data.root)
    minilm = MiniLM()
    encoder = CachedTextEncoder(minilm, store=ContentStore(settings.cache / "models.sqlite"))
    cache = CallCache(settings.cache / "calls.sqlite", mode="read_write")
    door = Door(backend, cache=cache, ledger=Ledger(settings.cache / "ledger.jsonl", run="local"))
    banks: dict[str, MemoryBank] = {}
    for history in dataset.histories:
        banks[history.id] = build_bank(
            history,
            root=settings.cache / "banks",
            generate=door.generate,
            counter=minilm.counter,
            encoder=encoder,
            settings=settings.memory.bank,
            model_id=backend.model_id,
            progress=lambda _step, _done, _total: None,
        )
    metric = profile(settings.reward.metric_profile)
    answerer = Answerer(door.generate, forms=forms_named(settings.memory.forms), counter=backend.counter, metric=metric)
    split = Split.of(dataset, by=settings.data.split_by, seed=settings.data.split_seed)
    return Workbench(settings, dataset, split, banks, encoder, door, answerer)


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
    folder = build_tiny_qwen3_vl(tmp_path / "model")
    local = Qwen3VLSettings(**vars(pretrained(folder, batch_size=32)), batch_tokens=40_000)
    backend = Qwen3VL(local)
    patches: list[int] = []
    backend._model.model.visual.register_forward_hook(lambda _module, inputs, _output: patches.append(len(inputs[0])))
    seconds: dict[str, float] = {"prepared": time.perf_counter() - started}

    workbench = open_parts(settings, backend)
    seconds["built"] = time.perf_counter() - started
    assert len(workbench.dataset.histories) == N_HISTORIES and len(workbench.dataset.questions) == N_HISTORIES * N_QUESTIONS
    images = [image for history in workbench.dataset.histories for image in history.images]
    assert images and all(max(load_picture(image.path).pixels().size) <= MAX_SIDE for image in images if image.path)

    policy = train_selector(workbench, tmp_path / "run")
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
    summaries = summarise(rows, metric_profile=settings.reward.metric_profile, answerer=backend.model_id)
    seconds["evaluated"] = time.perf_counter() - started
    logger.info("seconds since the start: %s", {name: round(value, 1) for name, value in seconds.items()})

    assert [*summaries] == [*methods] and len(rows) == 3 * N_QUESTIONS
    assert all(row.answer and row.total_tokens > 0 for row in rows)
    assert summaries["all-forms"].evidence_tokens_per_question > summaries["summary-only"].evidence_tokens_per_question > 0
    paid = [entry for entry in read_ledger(settings.cache / "ledger.jsonl") if not entry.hit]
    by_task = {task: sum(entry.task == task for entry in paid) for task in ("memorise", "caption", "ground", "answer")}
    assert by_task["caption"] == by_task["ground"] == len(images) and by_task["memorise"] >= N_HISTORIES and by_task["answer"] >= 3 * 8
    # Four 16-pixel patches are one token: every picture of every paid call went through the vision tower, once.
    assert sum(patches) == 4 * sum(entry.image_tokens for entry in paid) > 0
    assert len({entry.key for entry in paid}) == len(paid)
    assert seconds["evaluated"] < SECONDS
