"""Everything a run works with, opened from its settings: data, models, banks, prepared questions, answerer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import ImageError, SplitError
from data.history import Dataset, Question
from data.images import unusable_images
from data.loaders.mem_gallery import load_mem_gallery
from data.sample.generate import generate_sample
from data.splits import Split, without_refusals
from envs.answering import Answerer
from envs.backends import open_backend, open_encoder, open_image_encoder
from envs.banks import build_memories, check_parts
from envs.metrics.text import profile
from envs.questions import PreparedQuestion, prepare_questions
from envs.reward import RewardNormaliser
from envs.run_folder import LEDGER
from envs.selection import EvidenceSelectionEnv
from envs.settings import RewardSettings, Settings, default_settings
from memory.adamm.model import AdaMMMemory
from memory.bank import MemoryBank
from memory.forms import forms_named
from memory.identity import Part
from models.cache.calls import CallCache
from models.door import Door
from models.embedded.engine import EmbeddedEngine
from models.embedded.ocr import TextReader
from models.encoders.minilm import MiniLM
from models.encoders.types import ImageEncoder, TextEncoder
from models.ledger import Ledger
from models.prices import PriceList
from models.requests import Usage
from models.store import ContentStore
from models.tasks.answer import answer_formats
from planners.composers import Random

EMBEDDED_NOTE = "Answered by the embedded engine, which is for trying and testing: these are not results of a vision-language model."


@dataclass(frozen=True)
class Workbench:
    """The opened parts of a run; ``split`` is the part of each question.

    ``banks`` (HiVe-Mem's) and ``adamm`` are by history id, and empty where the settings do not build them. ``image_encoder`` is what
    AdaMM's memory was built with, None where there is none.
    """

    settings: Settings
    dataset: Dataset
    split: Split
    banks: Mapping[str, MemoryBank]
    adamm: Mapping[str, AdaMMMemory]
    encoder: TextEncoder
    image_encoder: ImageEncoder | None
    door: Door
    answerer: Answerer

    @property
    def is_embedded(self) -> bool:
        """Whether answers come from the embedded engine, whose results are not a vision-language model's."""
        return isinstance(self.door.backend, EmbeddedEngine)

    @property
    def answerer_name(self) -> str:
        """The answering model, as a table's title says it."""
        return f"the embedded engine ({self.door.backend.model_id})" if self.is_embedded else self.door.backend.model_id

    def questions(self, part: str, *, refusals: bool) -> list[PreparedQuestion]:
        """The prepared questions of one part of the split, with or without those whose answer is a refusal."""
        questions = self.split.questions(self.dataset)[part]
        return self.prepare(questions if refusals else without_refusals(questions, self.dataset.refusal_categories))

    def prepare(self, questions: Sequence[Question]) -> list[PreparedQuestion]:
        """Retrieve and cost any questions of the dataset."""
        return prepare_questions(
            questions,
            banks=self.banks,
            encoder=self.encoder,
            retrieval=self.settings.memory.retrieval,
            forms=self.answerer.forms,
            counter=self.door.backend.counter,
            instructions=answer_formats()[self.settings.data.answer_format] if self.settings.data.answer_format else {},
        )

    def empty_normaliser(self) -> RewardNormaliser:
        """New reward windows with nothing in them."""
        settings: RewardSettings = self.settings.reward
        return RewardNormaliser(
            cost_window=settings.cost_window,
            sample_window=settings.sample_window,
            min_samples=settings.min_samples,
            max_alpha=settings.max_alpha,
            epsilon=settings.epsilon,
        )

    def reward_normaliser(self, questions: Sequence[PreparedQuestion]) -> RewardNormaliser:
        """New reward windows, the cost window filled with random compositions of ``questions``."""
        settings: RewardSettings = self.settings.reward
        normaliser = self.empty_normaliser()
        rng = np.random.default_rng([self.settings.seed, 1])
        composer = Random(rng)
        items = [questions[number] for number in rng.integers(len(questions), size=settings.n_prefill)]
        bits = [composer.select_batch(item.query[None], item.summaries[None], item.available[None])[0] for item in items]
        normaliser.prefill([self.answerer.evidence_tokens(item, chosen).total for item, chosen in zip(items, bits, strict=True)])
        return normaliser


def open_workbench(
    settings: Settings, *, split: Split | None = None, folder: Path | None = None, needs: tuple[Part, ...] = ("hive",)
) -> Workbench:
    """Open everything: load (or generate) the data, split it, open the models, build the banks that are missing.

    Args:
        settings: The run's settings.
        split: The stored split of an earlier run; None makes it from the settings.
        folder: The run's folder, which gets the ledger of all model calls; None keeps none.
        needs: The parts of the memory that the caller works with.

    Raises:
        envs.errors.SettingsError: the settings do not build a part that is needed.
        data.errors.DatasetError: the data cannot be used.
        data.errors.SplitError: too few histories, or a stored split that does not fit.
        models.errors.BackendError: a model call failed; what was answered is kept.
    """
    check_parts(settings, needs)
    dataset = _load(settings)
    part = split or Split.of(dataset, by=settings.data.split_by, seed=settings.data.split_seed)
    _check_parts(dataset, part)  # what does not fit is told before banks are built
    _check_images(dataset)
    store = ContentStore(settings.cache / "models.sqlite")
    minilm = MiniLM()
    encoder = open_encoder(settings, store=store, minilm=minilm)
    door = _open_door(settings, dataset, store=store, minilm=minilm, folder=folder)
    backend = door.backend
    image_encoder = open_image_encoder(settings, store=store) if "adamm" in settings.memory.parts else None
    memories = build_memories(
        settings,
        dataset.histories,
        door=door,
        text_encoder=encoder,
        image_encoder=image_encoder,
        counter=minilm.counter,
        reader=TextReader(store),
    )
    answerer = Answerer(
        door.generate, forms=forms_named(settings.memory.forms), counter=backend.counter, metric=profile(settings.reward.metric_profile)
    )
    return Workbench(settings, dataset, part, memories.banks, memories.adamm, encoder, image_encoder, door, answerer)


def open_data_and_door(settings: Settings, *, folder: Path | None) -> tuple[Dataset, Door]:
    """Open the data and the answering model alone, without any memory; arguments and errors as for `open_workbench`."""
    dataset = _load(settings)
    return dataset, _open_door(settings, dataset, store=ContentStore(settings.cache / "models.sqlite"), minilm=MiniLM(), folder=folder)


def _open_door(settings: Settings, dataset: Dataset, *, store: ContentStore, minilm: MiniLM, folder: Path | None) -> Door:
    backend = open_backend(settings, dataset, store=store, minilm=minilm)
    if settings.prices is not None:
        PriceList.load(settings.prices).usd(backend.model_id, Usage(0, 0, 0))  # an unknown model is told before anything is paid
    cache = CallCache(settings.call_cache.where or settings.cache / "calls.sqlite", mode=settings.call_cache.mode)
    ledger = None if folder is None else Ledger(folder / LEDGER, run=folder.name)
    return Door(backend, cache=cache, ledger=ledger)


def _check_parts(dataset: Dataset, split: Split) -> None:
    for name, questions in split.questions(dataset).items():
        if not without_refusals(questions, dataset.refusal_categories):
            raise SplitError(
                f"{dataset.name}: the {name} part has {len(questions)} questions and none with an answer; "
                "add questions, or change data.split_seed or data.split_by"
            )


def _check_images(dataset: Dataset) -> None:
    problems = [f"history {history.id!r}, {problem}" for history in dataset.histories for problem in unusable_images(history.images)]
    problems += [f"question {question.id}, {problem}" for question in dataset.questions for problem in unusable_images(question.images)]
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ImageError(f"{dataset.name}: {len(problems)} unusable image(s):\n{listed}")


def _load(settings: Settings) -> Dataset:
    sample = settings.data.sample
    if sample is not None:
        generate_sample(settings.data.root, seed=sample.seed, n_histories=sample.n_histories, n_questions=sample.n_questions)
    return load_mem_gallery(settings.data.root)


def one_history_settings(**changes: Any) -> Settings:
    """The default settings on a sample of one history, kept in ``outputs/``; changes as for `default_settings`."""
    outputs = Path(__file__).resolve().parents[1] / "outputs"
    data = {"root": outputs / "one_history", "split_by": "question", "sample": {"seed": 0, "n_histories": 1, "n_questions": 150}}
    return default_settings(data=data, cache=outputs / "cache", **changes)


def make_selection_env(settings: Settings | None = None, *, part: str = "train") -> EvidenceSelectionEnv:
    """The environment behind ``gymnasium.make("EvidenceGym/EvidenceSelection-v0")``.

    Args:
        settings: The settings of a run; None takes the defaults on a sample of one history, kept in ``outputs/``.
        part: Which part of the split asks the questions.
    """
    settings = settings or one_history_settings()
    workbench = open_workbench(settings)
    questions = workbench.questions(part, refusals=settings.data.train_refusals)
    normaliser = workbench.reward_normaliser(questions)
    return EvidenceSelectionEnv(questions, answerer=workbench.answerer, normaliser=normaliser, cost_weight=settings.reward.cost_weight)
