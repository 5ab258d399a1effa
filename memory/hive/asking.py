"""What the model is asked while HiVe-Mem's bank is built: one call an episode, two an image (HiVe-Mem, §3.1, A.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory.asking import Call, Captions, Generate, Progress, ask, caption_calls, seen
from memory.hive.episodes import InteractionEpisode
from models.tasks.hive import (
    GroundInputs,
    GroundReply,
    MemoriseInputs,
    MemoriseReply,
    ground_request,
    memorise_request,
    parse_ground,
    parse_memorise,
)


@dataclass(frozen=True)
class BuildReplies:
    """The model's replies about one history: by episode index, and by image id for the images that have a file."""

    memorised: Mapping[int, MemoriseReply]
    captions: Mapping[str, str]
    grounded: Mapping[str, GroundReply]


def ask_model(episodes: Sequence[InteractionEpisode], *, generate: Generate, captions: Captions, progress: Progress) -> BuildReplies:
    """Ask for everything that a bank needs, in batches.

    An image without a file is not captioned or grounded; the dataset's caption stands for it. A request depends on
    its own episode only, so episodes that did not change are found in the call cache.

    Raises:
        models.errors.ReplyError: replies that are not what was asked for, all of them at once.
        models.errors.BackendError: a call failed.
    """
    calls = [call for episode in episodes for call in _calls(episode, captions)]
    replies = ask(calls, generate=generate, stage="asking the model", progress=progress)
    return BuildReplies(replies["memorise"], replies["caption"], replies["ground"])


def _calls(episode: InteractionEpisode, captions: Captions) -> Iterator[Call]:
    images = tuple(seen(image) for image in episode.images)
    yield Call(episode.index, memorise_request(MemoriseInputs(episode.date, episode.text, images)), parse_memorise)
    for image in images:
        if image.picture is not None:
            yield from caption_calls([image], captions)
            context = episode.passage_around(image.image_id)
            yield Call(image.image_id, ground_request(GroundInputs(image.image_id, image.picture, context)), parse_ground)
