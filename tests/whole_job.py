"""The whole job in small, for tests with a real vision-language model: a cut sample, training, three methods evaluated."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from data.sample.generate import generate_sample
from envs.evaluation.comparison import compare
from envs.evaluation.records import Row
from envs.settings import Settings, default_settings
from envs.training import export, open_training
from envs.workbench import Workbench
from planners.composers import Composer, Uniform
from policies.inference import Selector

N_HISTORIES, N_QUESTIONS, MAX_SIDE = 3, 8, 256
METHODS = ["selector", "all-forms", "summary-only"]


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


def small_settings(sample: Path, cache: Path, vlm: Any) -> Settings:
    """Two epochs on the cut sample, with this model."""
    settings = default_settings(
        data={"root": sample, "sample": None},
        cache=cache,
        env={"n_envs": 4},
        algo={"epochs": 2, "minibatch_size": 4},
        logger={"tensorboard": False},
    )
    return settings.model_copy(update={"vlm": vlm})


def train_and_evaluate(workbench: Workbench, folder: Path) -> list[Row]:
    """Train a selector, export it, and answer the test questions with it and with two fixed compositions."""
    exported = export(open_training(workbench, folder).run(), workbench, folder)
    forms = np.array(list(workbench.answerer.forms))
    composers: list[Composer] = [
        Selector.load(exported, encoder_id=workbench.encoder.id),
        Uniform(np.ones(len(forms), np.bool_)),
        Uniform(forms == "summary"),
    ]
    questions = workbench.questions("test", refusals=True)
    rows: list[Row] = []
    for method, composer in zip(METHODS, composers, strict=True):
        rows += compare(method, composer, questions, workbench.answerer, split="test", refusals=workbench.dataset.refusal_categories)
    return rows
