"""Everything a run works with, opened from its settings: data, models, banks, prepared questions, answerer."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from data.errors import ImageError, SplitError
from data.history import Dataset, Question
from data.images import load_picture
from data.loaders.mem_gallery import load_mem_gallery
from data.sample.generate import generate_sample
from data.splits import Split, without_refusals
from envs.answering import Answerer
from envs.backends import open_backend, open_encoder
from envs.metrics.text import profile
from envs.questions import PreparedQuestion, prepare_questions
from envs.reward import RewardNormaliser
from envs.selection import EvidenceSelectionEnv
from envs.settings import RewardSettings, Settings, default_settings
from memory.bank import MemoryBank
from memory.build import build_bank
from memory.forms import forms_named
from models.cache.calls import CallCache
from models.door import Door
from models.embedded.engine import EmbeddedEngine
from models.encoders.minilm import MiniLM
from models.encoders.types import TextEncoder
from models.ledger import Ledger
from models.prices import PriceList
from models.requests import Usage
from models.store import ContentStore
from models.tasks.answer import answer_formats
from planners.composers import Random

LEDGER = "ledger.jsonl"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workbench:
    """The opened parts of a run; ``banks`` by history id, ``split`` is the part of each question."""

    settings: Settings
    dataset: Dataset
    split: Split
    banks: Mapping[str, MemoryBank]
    encoder: TextEncoder
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

    def reward_normaliser(self, questions: Sequence[PreparedQuestion]) -> RewardNormaliser:
        """New reward windows, the cost window filled with random compositions of ``questions``."""
        settings: RewardSettings = self.settings.reward
        normaliser = RewardNormaliser(
            cost_window=settings.cost_window,
            sample_window=settings.sample_window,
            min_samples=settings.min_samples,
            max_alpha=settings.max_alpha,
            epsilon=settings.epsilon,
        )
        rng = np.random.default_rng([self.settings.seed, 1])
        composer = Random(rng)
        items = [questions[number] for number in rng.integers(len(questions), size=settings.n_prefill)]
        bits = [composer.select_batch(item.query[None], item.summaries[None], item.available[None])[0] for item in items]
        normaliser.prefill([self.answerer.evidence_tokens(item, chosen).total for item, chosen in zip(items, bits, strict=True)])
        return normaliser


def open_workbench(settings: Settings, *, split: Split | None = None, folder: Path | None = None) -> Workbench:
    """Open everything: load (or generate) the data, split it, open the models, build the banks that are missing.

    Args:
        settings: The run's settings.
        split: The stored split of an earlier run; None makes it from the settings.
        folder: The run's folder, which gets the ledger of all model calls; None keeps none.

    Raises:
        data.errors.DatasetError: the data cannot be used.
        data.errors.SplitError: too few histories, or a stored split that does not fit.
        models.errors.BackendError: a model call failed; what was answered is kept.
    """
    dataset = _load(settings)
    part = split or Split.of(dataset, by=settings.data.split_by, seed=settings.data.split_seed)
    _check_parts(dataset, part)  # what does not fit is told before banks are built
    _check_question_images(dataset)
    store = ContentStore(settings.cache / "models.sqlite")
    minilm = MiniLM()
    encoder = open_encoder(settings, store=store, minilm=minilm)
    backend = open_backend(settings, dataset, store=store, minilm=minilm)
    if settings.prices is not None:
        PriceList.load(settings.prices).usd(backend.model_id, Usage(0, 0, 0))  # an unknown model is told before anything is paid
    cache = CallCache(settings.call_cache.where or settings.cache / "calls.sqlite", mode=settings.call_cache.mode)
    ledger = None if folder is None else Ledger(folder / LEDGER, run=folder.name)
    door = Door(backend, cache=cache, ledger=ledger)
    banks = {}
    with _bank_progress() as progress:
        task = progress.add_task("banks", total=len(dataset.histories), step="")
        for history in dataset.histories:
            banks[history.id] = build_bank(
                history,
                root=settings.cache / "banks",
                generate=door.generate,
                counter=minilm.counter,
                encoder=encoder,
                settings=settings.memory.bank,
                model_id=backend.model_id,
                progress=lambda step, done, total: progress.update(task, step=f"{step} {done}/{total}"),
            )
            progress.advance(task)
            logger.debug("bank of %s: %s", history.id, banks[history.id].folder)
        progress.update(task, step="")
    answerer = Answerer(
        door.generate, forms=forms_named(settings.memory.forms), counter=backend.counter, metric=profile(settings.reward.metric_profile)
    )
    return Workbench(settings, dataset, part, banks, encoder, door, answerer)


def _check_parts(dataset: Dataset, split: Split) -> None:
    for name, questions in split.questions(dataset).items():
        if not without_refusals(questions, dataset.refusal_categories):
            raise SplitError(
                f"{dataset.name}: the {name} part has {len(questions)} questions and none with an answer; "
                "add questions, or change data.split_seed or data.split_by"
            )


def _check_question_images(dataset: Dataset) -> None:
    problems = []
    for question in dataset.questions:
        for image in question.images:
            try:
                if image.path is not None:
                    load_picture(image.path)
            except ImageError as error:
                problems.append(f"question {question.id}: {error}")
    if problems:
        raise ImageError("\n".join(problems))


def _load(settings: Settings) -> Dataset:
    sample = settings.data.sample
    if sample is not None:
        generate_sample(settings.data.root, seed=sample.seed, n_histories=sample.n_histories, n_questions=sample.n_questions)
    return load_mem_gallery(settings.data.root)


def _bank_progress() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[step]}"),
    )
    return Progress(*columns)


def make_selection_env(settings: Settings | None = None, *, part: str = "train") -> EvidenceSelectionEnv:
    """The environment behind ``gymnasium.make("EvidenceGym/EvidenceSelection-v0")``.

    Args:
        settings: The settings of a run; None takes the defaults on a sample of one history, kept in ``outputs/``.
        part: Which part of the split asks the questions.
    """
    if settings is None:
        outputs = Path(__file__).resolve().parents[1] / "outputs"
        data = {"root": outputs / "one_history", "split_by": "question", "sample": {"seed": 0, "n_histories": 1, "n_questions": 150}}
        settings = default_settings(data=data, cache=outputs / "cache")
    workbench = open_workbench(settings)
    questions = workbench.questions(part, refusals=settings.data.train_refusals)
    normaliser = workbench.reward_normaliser(questions)
    return EvidenceSelectionEnv(questions, answerer=workbench.answerer, normaliser=normaliser, cost_weight=settings.reward.cost_weight)


def split_of_run(folder: Path) -> Split | None:
    """The split that a run stored in its folder, if it got that far."""
    path = folder / "split.json"
    return Split.load(path) if path.exists() else None
