"""Asking the model while memory is built: in batches, with every unusable reply told at once."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from data.errors import ImageError
from data.history import History, ImageRef
from data.images import load_picture, unusable_images
from models.errors import ReplyError
from models.requests import Reply, Request
from models.tasks.base import SeenImage
from models.tasks.hive import CaptionInputs, caption_request

Generate = Callable[[Sequence[Request]], list[Reply]]
Progress = Callable[[str, int, int], None]
"""Told the name of the stage, how much of it is done, and how much there is."""

Captions = Literal["model", "dataset"]
"""Whether captions are the caption task's or the dataset's."""

_REQUESTS_PER_BATCH = 64


@dataclass(frozen=True)
class Call:
    """One request, what it is about (in error messages and as key), and how its reply is read."""

    about: Hashable
    request: Request
    parse: Callable[[str], Any]


def ask(calls: Sequence[Call], *, generate: Generate, stage: str, progress: Progress) -> Mapping[str, dict[Any, Any]]:
    """Ask for everything, in batches; returns the parsed replies by task, then by what they are about.

    Raises:
        models.errors.ReplyError: replies that are not what was asked for, all of them at once.
        models.errors.BackendError: a call failed.
    """
    replies: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
    problems: list[str] = []
    for start in range(0, len(calls), _REQUESTS_PER_BATCH):
        batch = calls[start : start + _REQUESTS_PER_BATCH]
        progress(stage, start, len(calls))
        for call, reply in zip(batch, generate([call.request for call in batch]), strict=True):
            try:
                replies[call.request.task][call.about] = call.parse(reply.text)
            except ReplyError as error:
                problems.append(f"{call.request.task} of {call.about!r}: {error}")
    progress(stage, len(calls), len(calls))
    if problems:
        raise ReplyError(f"{len(problems)} unusable replies while building memory:\n" + "\n".join(f"  - {problem}" for problem in problems))
    return replies


def seen(image: ImageRef) -> SeenImage:
    """The image as the model sees it: `SeenImage` keeps the dataset's caption only where there are no pixels."""
    return SeenImage(image.id, None if image.path is None else load_picture(image.path), image.caption)


def caption_calls(images: Iterable[SeenImage], captions: Captions) -> list[Call]:
    """The calls for the captions that the model gives: of images with a file, unless the dataset's captions are wanted."""
    if captions == "dataset":
        return []
    return [
        Call(image.image_id, caption_request(CaptionInputs(image.image_id, image.picture)), str.strip)
        for image in images
        if image.picture is not None
    ]


def check_images(history: History) -> None:
    """Decode every image file once, so that a bad one stops the building before it starts.

    Raises:
        data.errors.ImageError: image files that cannot be used, all of them at once.
    """
    if problems := unusable_images(history.images):
        shown = "\n".join(f"  - {problem}" for problem in problems)
        raise ImageError(f"history {history.id!r}: {len(problems)} unusable image(s):\n{shown}")
