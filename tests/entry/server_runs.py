"""Small runs of ``train.py`` that ask the fault server: how they are started, and what they leave."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from tests.models.openai_compatible.support import TOKENIZER

CONCURRENCY = 4
SMALL = [
    "experiment=tiny",
    "data.sample.n_questions=40",
    "memory.forms=[raw,summary,image]",
    "env.n_envs=8",
    "algo.minibatch_size=8",
    "algo.epochs=3",
    "reward.min_samples=8",
    f"vlm.concurrency={CONCURRENCY}",
    "vlm.max_retries=0",
    "vlm.max_failures=3",
]
RESULTS = (
    "summary.json",
    "validation.json",
    "rows.parquet",
    "checkpoints/metrics.jsonl",
    "checkpoints/best.safetensors",
    "selector/selector.safetensors",
    "selector/selector.onnx",
)


@dataclass(frozen=True)
class Place:
    """Where a run's data, cache and results are; each place has its own."""

    root: Path

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def data(self) -> Path:
        return self.root / "sample"

    def arguments(self, base_url: str, *more: str) -> list[str]:
        """The command line of ``train.py``."""
        server = ["vlm=openai", f"vlm.base_url={base_url}", "vlm.model=fault-vlm", f"vlm.tokenizer={TOKENIZER}"]
        where = [f"data.root={self.data}", f"cache={self.cache}", f"hydra.run.dir={self.run}"]
        return [*server, *SMALL, *where, *more]

    def text(self, name: str) -> str:
        """A file of the run's folder; "" if it is not there yet."""
        path = self.run / name
        return path.read_text() if path.exists() else ""

    def an_image(self) -> Path:
        """The history's first image."""
        (path,) = (self.data / "image").rglob("D1_IMG_001.png")
        return path

    def results(self) -> dict[str, bytes]:
        """What must be equal in runs that ended alike."""
        return {name: (self.run / name).read_bytes() for name in RESULTS}


def stored_requests(place: Place) -> dict[str, str]:
    """The committed calls: what was asked, by key."""
    path = place.cache / "calls.sqlite"
    if not path.exists():
        return {}
    with sqlite3.connect(path) as connection:
        has_table = connection.execute("SELECT name FROM sqlite_master WHERE name = 'calls'").fetchone()
        return dict(connection.execute("SELECT key, request FROM calls ORDER BY key").fetchall()) if has_table else {}
