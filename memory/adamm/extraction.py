"""Attribute extraction: what each round states or shows, grounded in its dialogue and images (AdaMM, §3.3.1, Eq. 1)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from data.history import History, Round
from memory.adamm.model import Observation
from memory.adamm.names import MAX_NAME, fold, fold_spaces, snake_case
from memory.asking import Call, Captions, Generate, Progress, ask, caption_calls, seen
from memory.hive.episodes import round_text
from models.embedded.ocr import TextReader
from models.tasks.adamm import ExtractedValue, ExtractInputs, extract_request, parse_extract
from models.tasks.base import SeenImage


@dataclass(frozen=True)
class RoundContent:
    """One round as it is remembered: ``order`` counts from 0 through the history; ``captions`` are (image id, caption), none empty."""

    order: int
    session_id: str
    date: str
    round: Round
    images: tuple[SeenImage, ...]
    captions: tuple[tuple[str, str], ...]

    @property
    def dialogue(self) -> str:
        """What both sides said, and the id of each image where it was shared; never a caption."""
        return round_text(self.round)


def read_rounds(history: History, *, captions: Captions, generate: Generate, progress: Progress) -> tuple[RoundContent, ...]:
    """The rounds of a history, with the captions that ``captions`` ("model" or "dataset") asks for.

    Images without a file keep the dataset's caption.
    """
    images = {image.id: seen(image) for image in history.images}
    replies = ask(caption_calls(images.values(), captions), generate=generate, stage="captions", progress=progress)["caption"]
    found = {image.id: replies.get(image.id, image.caption) for image in history.images}
    dated = [(session, round_) for session in history.sessions for round_ in session.rounds]
    return tuple(
        RoundContent(
            order,
            session.id,
            session.date,
            round_,
            tuple(images[image.id] for image in round_.images),
            tuple((image.id, found[image.id]) for image in round_.images if found[image.id]),
        )
        for order, (session, round_) in enumerate(dated)
    )


@dataclass(frozen=True)
class Extraction:
    """The observations of all rounds, in order, and how many were dropped or doubted and why."""

    observations: tuple[Observation, ...]
    counts: Mapping[str, int]


def extract(rounds: Sequence[RoundContent], *, generate: Generate, reader: TextReader | None, progress: Progress) -> Extraction:
    """Ask for the observations of every round, and keep those that are grounded.

    A request depends on its own round only, so the rounds of a history that grew are found in the call cache.

    Raises:
        models.errors.ReplyError: replies that are not what was asked for, all of them at once.
        models.errors.BackendError: a call failed.
    """
    calls = [Call(content.round.id, extract_request(_inputs(content)), parse_extract) for content in rounds]
    replies = ask(calls, generate=generate, stage="extraction", progress=progress)["extract"]
    counts = Counter(dict.fromkeys(_COUNTS, 0))
    observations = [observation for content in rounds for observation in _grounded(content, replies[content.round.id], reader, counts)]
    return Extraction(tuple(observations), dict(counts))


_COUNTS = (
    "observations",
    "observations_without_name",
    "observations_without_value",
    "observations_without_pointer",
    "observations_not_in_dialogue",
    "observations_of_unknown_image",
    "observations_not_recognised",
    "duplicates",
)


def _inputs(content: RoundContent) -> ExtractInputs:
    pixels = {image.image_id for image in content.images if image.picture is not None}  # an image without them is its caption already
    captions = tuple((image_id, caption) for image_id, caption in content.captions if image_id in pixels)
    return ExtractInputs(content.date, content.dialogue, content.images, captions)


def _grounded(
    content: RoundContent, values: Sequence[ExtractedValue], reader: TextReader | None, counts: Counter[str]
) -> Iterator[Observation]:
    """The observations whose pointers hold, in the model's order; the rest is counted."""
    dialogue = fold_spaces(content.dialogue)
    images = {image.image_id: image for image in content.images}
    attributes: set[str] = set()
    position = 0
    for value in values:
        name = snake_case(value.attribute)
        problem = _problem(name, value, dialogue, images)
        if problem:
            counts.update([problem])
            continue
        image = None if fold_spaces(value.quote) else images[value.image_id]
        if image is not None and image.picture is not None and reader is not None:
            recognised = " ".join(line.text for line in reader.lines(image.picture))
            counts.update(observations_not_recognised=int(_letters(value.value) not in _letters(recognised)))
        counts.update(observations=1, duplicates=int(name in attributes))
        attributes.add(name)
        quote, image_id = ("", image.image_id) if image else (value.quote.strip(), "")
        yield Observation(content.order, position, name, value.value.strip(), quote, image_id)
        position += 1


def _problem(name: str, value: ExtractedValue, dialogue: str, images: Mapping[str, SeenImage]) -> str:
    """Why a value is dropped, "" if it is not: a quote is what counts where a quote and an image are given."""
    quote, written = fold_spaces(value.quote), fold_spaces(value.value)
    if not name or len(name) > MAX_NAME:
        return "observations_without_name"
    if not written:
        return "observations_without_value"
    if quote:
        return "" if written in quote and quote in dialogue else "observations_not_in_dialogue"
    if value.image_id:
        return "" if value.image_id in images else "observations_of_unknown_image"
    return "observations_without_pointer"


def _letters(text: str) -> str:
    """A text without spaces, which readers of pictures lose and add."""
    return "".join(fold(text).split())
