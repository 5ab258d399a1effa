"""The memorise task: an extractive summary of one episode and its anchors, in one reply."""

import json
import math
from collections import Counter
from collections.abc import Callable

from models.embedded.english import content_stems, stem_set
from models.embedded.layout import Layout, layout_of
from models.embedded.ocr import TextReader
from models.embedded.phrases import noun_phrases
from models.embedded.turns import Sentence, read_turns
from models.tasks.hive import MemoriseInputs

_SUMMARY_SHARE = 0.22
_OPENS_TURN = 3.0
_WITH_IMAGE = 2.0
_TEXTUAL_ANCHORS = 16
_VISUAL_ANCHORS = 40


def memorise(inputs: MemoriseInputs, *, reader: TextReader, count: Callable[[str], int]) -> str:
    """Summarise and anchor one episode; the reply is JSON in ``MEMORISE_SCHEMA``."""
    sentences = read_turns(inputs.text)
    seen: list[str] = []
    for image in inputs.images:
        seen += [image.caption] if image.picture is None else _visible_phrases(layout_of(reader.lines(image.picture)))
    reply = {
        "summary": _summary(sentences, count) or inputs.text.strip() or "Nothing was said.",
        "textual_anchors": noun_phrases([sentence.text for sentence in sentences], _TEXTUAL_ANCHORS),
        "visual_anchors": noun_phrases(seen, _VISUAL_ANCHORS),
    }
    return json.dumps(reply, ensure_ascii=False)


def _visible_phrases(layout: Layout) -> list[str]:
    return [layout.title, *(row.label for row in layout.rows if row.label)]


def _summary(sentences: tuple[Sentence, ...], count: Callable[[str], int]) -> str:
    """The most central sentences, in order, up to a share of the episode's tokens.

    A sentence scores the mean repetition of its content words over the episode, more if it opens a user's turn,
    less if it asks. Each further sentence counts only the words that those before it did not bring.
    """
    budget = max(24.0, _SUMMARY_SHARE * sum(count(sentence.text) for sentence in sentences))
    repeated = Counter(stem for sentence in sentences for stem in stem_set(sentence.text))
    chosen: list[int] = []
    told: set[str] = set()
    spent = 0
    while True:
        scores = {
            place: _score(sentence, repeated, told)
            for place, sentence in enumerate(sentences)
            if place not in chosen and spent + count(sentence.text) <= budget * 1.15
        }
        if not scores or spent >= budget:
            break
        best = max(scores, key=lambda place: (scores[place], -place))
        chosen.append(best)
        told |= stem_set(sentences[best].text)
        spent += count(sentences[best].text)
    return " ".join(sentences[place].text for place in sorted(chosen))


def _score(sentence: Sentence, repeated: Counter[str], told: set[str]) -> float:
    stems = content_stems(sentence.text)
    if len(stems) < 2:
        return 0.0
    weight = sum(1.0 + math.log(repeated[stem]) for stem in set(stems) - told) / math.sqrt(8.0 + len(stems))
    opens_turn = _OPENS_TURN if sentence.speaker != "assistant" and not sentence.before else 1.0
    with_image = _WITH_IMAGE if sentence.image_ids and opens_turn > 1.0 else 1.0
    asks = 0.6 if sentence.text.endswith("?") else 1.0
    return weight * opens_turn * with_image * asks * (0.6 if sentence.speaker == "assistant" else 1.0)
