"""A model that reads "label: value" and what a test says is in an image, and histories of sessions whose rounds log values."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from data.history import History, ImageRef, Round, Session
from data.typed_values import guess_type
from memory.adamm.build import build_adamm
from memory.adamm.model import AdaMMMemory
from memory.adamm.settings import AdaMMSettings
from memory.asking import Progress
from models.cache.calls import CallCache
from models.door import Door
from models.encoders.types import ImageEncoder
from models.requests import Reply, Request, TokenCounter, Usage
from tests.memory.fakes import HashEncoder, WordCounter, quiet

SETTINGS = AdaMMSettings(
    min_support=4,
    min_all_conf=0.6,
    min_ext_conf=0.8,
    max_tested=100_000,
    episode_threshold=0.6,
    topic_threshold=0.65,
    text_weight=0.6,
    visual_weight=0.4,
    gap_days=1,
    captions="model",
)
_PAIR = re.compile(r"([\w ]+): ([^;\n]*)")


class LabelModel:
    """A `Backend`; ``asked`` lists the requests that the call cache did not hold."""

    model_id = "labels"
    counter: TokenCounter = WordCounter()

    def __init__(self, shown: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """``shown``: what can be read in each image, by its id."""
        self._shown = shown or {}
        self.asked: list[Request] = []

    def stream(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        for position, request in enumerate(requests):
            self.asked.append(request)
            yield position, Reply("", self._answer(request), Usage(1, 1, 0), 0.0)

    def _answer(self, request: Request) -> str:
        inputs = request.inputs
        if request.task == "caption":
            return f"picture {inputs.image_id}"
        if request.task == "describe":
            return f"{inputs.level} about {inputs.parts[0][:40]}"
        if request.task == "table":
            columns = [{"name": name, "type": guess_type(values[:1]), "description": f"the {name}"} for name, values in inputs.columns]
            return json.dumps({"name": f"Log of {inputs.columns[0][0]}", "description": "What was logged.", "columns": columns})
        said = [line.removeprefix("user: ") for line in inputs.dialogue.splitlines() if line.startswith("user: ")]
        found = [(name, value, match.group(), "") for line in said for match in _PAIR.finditer(line) for name, value in [match.groups()]]
        found += [
            (name, value, "", image.image_id) for image in inputs.images for name, value in self._shown.get(image.image_id, {}).items()
        ]
        names = ("attribute", "value", "quote", "image_id")
        return json.dumps({"observations": [dict(zip(names, one, strict=True)) for one in found]})


def session(name: str, date: str, *lines: str | tuple[str, ImageRef]) -> Session:
    """A session of one round a line, ids counted from 1; a line may come with an image."""
    rounds = []
    for number, line in enumerate(lines, start=1):
        text, images = (line, ()) if isinstance(line, str) else (line[0], (line[1],))
        rounds.append(Round(f"{name}:{number}", text, "Noted.", images))
    return Session(name, date, tuple(rounds))


def history(*sessions: Session) -> History:
    return History("health", sessions)


def build(
    of: History,
    folder: Path,
    model: LabelModel,
    *,
    settings: AdaMMSettings = SETTINGS,
    image_encoder: ImageEncoder | None = None,
    progress: Progress = quiet,
) -> AdaMMMemory:
    """`build_adamm` through a real door, whose cache is in ``folder``."""
    door = Door(model, cache=CallCache(folder / "calls.sqlite", mode="read_write"), ledger=None)
    return build_adamm(
        of,
        root=folder / "banks",
        generate=door.generate,
        text_encoder=HashEncoder(),
        image_encoder=image_encoder,
        counter=WordCounter(),
        settings=settings,
        model_id=model.model_id,
        progress=progress,
    )
