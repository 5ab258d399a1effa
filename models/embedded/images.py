"""Image search: which images a question means, and which shown image a question's own picture is."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from models.embedded.dates import DateRange
from models.embedded.english import content_stems, stem_set
from models.embedded.evidence import Evidence, Statement
from models.embedded.pictures import PictureMatcher
from models.embedded.question import Asked
from models.embedded.question_kinds import Kind
from models.embedded.ranking import rank, topic_weights
from models.tasks.base import SeenImage

_NEEDED = 0.15
_NEEDED_BY_WORDS = 0.3
_AMONG_BEST = 0.8
_OF_THE_KIND = 0.5
_CAPTION_WORDS = 12
_MANY = re.compile(r"\b(?:images|pictures|photos|photographs|screenshots|ids)\b(?! of \w+ (?:is|was|shows))", re.IGNORECASE)
_FIRST_LAST = re.compile(r"\bfirst and (?:the )?last\b", re.IGNORECASE)


@dataclass(frozen=True)
class AskedPicture:
    """What is known of a question's picture: the shown images it is, their days, and the words seen in it."""

    image_ids: tuple[str, ...]
    dates: tuple[str, ...]
    words: tuple[str, ...]


def question_picture(images: Sequence[SeenImage], evidence: Evidence, matcher: PictureMatcher) -> AskedPicture:
    """Find the question's pictures among the shown ones by pixels, else by the words in them or in their captions."""
    ids: dict[str, str] = {}
    words: list[str] = []
    for image in images:
        seen = frozenset(stem_set(image.caption)) if image.picture is None else matcher.words(image.picture)
        words += [stem for stem in content_stems(image.caption)][:_CAPTION_WORDS] or sorted(seen)
        if image.picture is not None and evidence.pictures:
            same = matcher.find(image.picture, [picture for _, _, picture in evidence.pictures])
            if same is not None:
                ids.setdefault(evidence.pictures[same][0], evidence.pictures[same][1])
                continue
        found = _by_words(tuple(sorted(seen)), evidence)
        if found:
            ids.setdefault(*found)
    return AskedPicture(tuple(sorted(ids)), tuple(dict.fromkeys(ids.values())), tuple(dict.fromkeys(words)))


def _by_words(words: tuple[str, ...], evidence: Evidence) -> tuple[str, str] | None:
    with_image = [statement for statement in evidence.statements if statement.image_ids]
    ranked = rank(topic_weights([(word, 1.0) for word in words], with_image), with_image)
    if not ranked or ranked[0].coverage < _NEEDED_BY_WORDS:
        return None
    return ranked[0].statement.image_ids[0], ranked[0].statement.date


def image_answer(asked: Asked, evidence: Evidence, days: Sequence[DateRange]) -> str:
    """Image ids in ascending order, or how many there are; "" if no image's statements share enough with the topic."""
    with_image = [one for one in evidence.statements if one.image_ids and (not days or any(span.holds(one.date) for span in days))]
    dated = {image_id: one.date for one in with_image for image_id in one.image_ids}
    dated |= {image_id: date for image_id, date, _ in evidence.pictures if not days}
    if _FIRST_LAST.search(asked.text) and dated:
        ordered = sorted(dated, key=lambda image_id: (dated[image_id], image_id))
        return ", ".join(sorted({ordered[0], ordered[-1]}))
    scores = _scores(asked, with_image)
    best = max(scores.values(), default=0.0)
    if asked.negated and _MANY.search(asked.text):
        return ", ".join(sorted(image_id for image_id in dated if scores.get(image_id, 0.0) < _OF_THE_KIND))
    if best < _NEEDED:
        return ""
    many = asked.kind is Kind.IMAGE_COUNT or asked.plural or bool(_MANY.search(asked.text))
    chosen = {image_id for image_id, score in scores.items() if score >= (_AMONG_BEST * best if many else best - 1e-9)}
    if asked.kind is Kind.IMAGE_COUNT:
        return str(len(chosen))
    return ", ".join(sorted(chosen) if many else sorted(chosen)[:1])


def _scores(asked: Asked, statements: Sequence[Statement]) -> dict[str, float]:
    """How much of the topic the best statement of each image covers; statements about several images count less for each."""
    scores: dict[str, float] = defaultdict(float)
    for found in rank(topic_weights(asked.topic, statements), statements):
        for image_id in found.statement.image_ids:
            scores[image_id] = max(scores[image_id], found.coverage / len(found.statement.image_ids) ** 0.25)
    return scores
