"""What the model is asked while a bank is built: one call an episode, two an image (HiVe-Mem, §3.1, A.1)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from data.history import ImageRef
from data.images import load_picture
from memory.hive.episodes import InteractionEpisode
from models.errors import ReplyError
from models.requests import Reply, Request
from models.tasks.base import SeenImage
from models.tasks.hive import (
    CaptionInputs,
    GroundInputs,
    GroundReply,
    MemoriseInputs,
    MemoriseReply,
    caption_request,
    ground_request,
    memorise_request,
    parse_ground,
    parse_memorise,
)

Generate = Callable[[Sequence[Request]], list[Reply]]
Progress = Callable[[str, int, int], None]
"""Told the name of the stage, how much of it is done, and how much there is."""

_REQUESTS_PER_BATCH = 64


@dataclass(frozen=True)
class BuildReplies:
    """The model's replies about one history: by episode index, and by image id for the images that have a file."""

    memorised: Mapping[int, MemoriseReply]
    captions: Mapping[str, str]
    grounded: Mapping[str, GroundReply]


@dataclass(frozen=True)
class _Call:
    """One request, what it is about, and how its reply is read."""

    about: int | str
    request: Request
    parse: Callable[[str], Any]


def ask_model(
    episodes: Sequence[InteractionEpisode], *, generate: Generate, captions: Literal["model", "dataset"], progress: Progress
) -> BuildReplies:
    """Ask for everything that a bank needs, in batches.

    An image without a file is not captioned or grounded; the dataset's caption stands for it. A request depends on
    its own episode only, so episodes that did not change are found in the call cache.

    Raises:
        models.errors.ReplyError: replies that are not what was asked for, all of them at once.
        models.errors.BackendError: a call failed.
    """
    calls = [call for episode in episodes for call in _calls(episode, captions)]
    replies: dict[str, dict[Any, Any]] = {"memorise": {}, "caption": {}, "ground": {}}
    problems: list[str] = []
    for start in range(0, len(calls), _REQUESTS_PER_BATCH):
        batch = calls[start : start + _REQUESTS_PER_BATCH]
        progress("asking the model", start, len(calls))
        for call, reply in zip(batch, generate([call.request for call in batch]), strict=True):
            try:
                replies[call.request.task][call.about] = call.parse(reply.text)
            except ReplyError as error:
                problems.append(f"{call.request.task} of {call.about!r}: {error}")
    progress("asking the model", len(calls), len(calls))
    if problems:
        raise ReplyError(f"{len(problems)} unusable replies while building memory:\n" + "\n".join(f"  - {problem}" for problem in problems))
    return BuildReplies(replies["memorise"], replies["caption"], replies["ground"])


def _calls(episode: InteractionEpisode, captions: str) -> Iterator[_Call]:
    seen = tuple(_seen(image) for image in episode.images)
    yield _Call(episode.index, memorise_request(MemoriseInputs(episode.date, episode.text, seen)), parse_memorise)
    for image in seen:
        if image.picture is not None:
            if captions == "model":
                yield _Call(image.image_id, caption_request(CaptionInputs(image.image_id, image.picture)), str.strip)
            context = episode.passage_around(image.image_id)
            yield _Call(image.image_id, ground_request(GroundInputs(image.image_id, image.picture, context)), parse_ground)


def _seen(image: ImageRef) -> SeenImage:
    """The image as the model sees it: `SeenImage` keeps the dataset's caption only where there are no pixels."""
    return SeenImage(image.id, None if image.path is None else load_picture(image.path), image.caption)
