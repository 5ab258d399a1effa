"""AdaMM's memory built by the embedded engine, with the real encoders and reader, from a sample history."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from data.history import History
from data.loaders.mem_gallery import load_mem_gallery
from data.sample.generate import generate_sample
from memory.adamm.build import build_adamm
from memory.adamm.model import AdaMMMemory
from models.cache.calls import CallCache
from models.door import Door
from models.embedded.engine import EmbeddedEngine
from models.embedded.ocr import TextReader
from models.encoders.cached import CachedTextEncoder
from models.encoders.efficientnet import EfficientNetLite0
from models.encoders.minilm import MiniLM
from models.requests import Reply, Request
from models.store import ContentStore
from tests.memory.adamm.fakes import SETTINGS
from tests.memory.adamm.test_build import assert_equal, rows_of
from tests.memory.fakes import quiet

Build = Callable[[History, Path], tuple[AdaMMMemory, list[Request]]]


class Counting(EmbeddedEngine):
    """The engine, with a list of what it was asked."""

    asked: list[Request]

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        self.asked = [*getattr(self, "asked", []), *requests]
        return super().stream(requests)


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Builds a history under a folder with a call cache of its own; vectors and recognised text are shared."""
    store, minilm = ContentStore(tmp_path / "models.sqlite"), MiniLM()
    images = EfficientNetLite0(store)

    def build(history: History, folder: Path) -> tuple[AdaMMMemory, list[Request]]:
        engine = Counting(store, image_encoder=images, counter=minilm.counter)
        memory = build_adamm(
            history,
            root=folder / "banks",
            generate=Door(engine, cache=CallCache(folder / "calls.sqlite", mode="read_write"), ledger=None).generate,
            text_encoder=CachedTextEncoder(minilm, store=store),
            image_encoder=images,
            counter=minilm.counter,
            settings=replace(SETTINGS, min_support=2),
            model_id=engine.model_id,
            progress=quiet,
            reader=TextReader(store),
        )
        return memory, engine.asked

    return build


def test_growing_equals_a_full_rebuild(build: Build, tmp_path: Path) -> None:
    generate_sample(tmp_path / "sample", seed=0, n_histories=1, n_questions=60)
    (whole,) = load_mem_gallery(tmp_path / "sample").histories
    history, last = replace(whole, sessions=whole.sessions[:4]), whole.sessions[3]
    build(replace(history, sessions=history.sessions[:3]), tmp_path / "stepwise")
    grown, asked = build(history, tmp_path / "stepwise")
    rebuilt, _ = build(history, tmp_path / "fresh")
    assert_equal(grown, rebuilt)
    assert [request.task for request in asked].count("extract") == len(last.rounds)
    assert [request.task for request in asked].count("caption") == sum(1 for round_ in last.rounds for _ in round_.images)

    observed = rows_of(grown)["main.observations"]
    assert {bool(image_id) for *_, image_id in observed} == {True, False}  # from pictures and from what was said
    dropped = [name for name in grown.counts if name.startswith("observations_") and grown.counts[name]]
    assert len(observed) == grown.counts["observations"] and dropped == []
    assert grown.tables != ()
