"""The memorise task: an extractive summary of one episode and its anchors, in one reply."""

import json
from collections.abc import Callable

from models.embedded.layout import Layout, layout_of
from models.embedded.ocr import TextReader
from models.embedded.phrases import noun_phrases
from models.embedded.summary import central_sentences
from models.embedded.turns import Sentence, read_turns
from models.tasks.hive import MemoriseInputs

_SUMMARY_SHARE = 0.22
_LEAST_TOKENS = 24.0
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
    """The most central sentences, up to a share of the episode's tokens."""
    budget = max(_LEAST_TOKENS, _SUMMARY_SHARE * sum(count(sentence.text) for sentence in sentences))
    return " ".join(central_sentences(sentences, budget=budget, count=count))
