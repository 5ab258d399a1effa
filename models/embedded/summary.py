"""Extractive summaries: the most central sentences of a text."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from models.embedded.english import content_stems, stem_set
from models.embedded.turns import Sentence

_OPENS_TURN = 3.0
_WITH_IMAGE = 2.0
_OVER = 1.15
"""How far the last sentence may go over the budget."""


def central_sentences(sentences: Sequence[Sentence], *, budget: float, count: Callable[[str], int], most: int | None = None) -> list[str]:
    """The most central sentences, in order, until ``budget`` is reached as ``count`` counts them, at most ``most``.

    A sentence scores the mean repetition of its content words over the text, more if it opens a user's turn,
    less if it asks. Each further sentence counts only the words that those before it did not bring.
    """
    repeated = Counter(stem for sentence in sentences for stem in stem_set(sentence.text))
    chosen: list[int] = []
    told: set[str] = set()
    spent = 0
    while spent < budget and len(chosen) != most:
        scores = {
            place: _score(sentence, repeated, told)
            for place, sentence in enumerate(sentences)
            if place not in chosen and spent + count(sentence.text) <= budget * _OVER
        }
        if not scores:
            break
        best = max(scores, key=lambda place: (scores[place], -place))
        chosen.append(best)
        told |= stem_set(sentences[best].text)
        spent += count(sentences[best].text)
    return [sentences[place].text for place in sorted(chosen)]


def _score(sentence: Sentence, repeated: Counter[str], told: set[str]) -> float:
    stems = content_stems(sentence.text)
    if len(stems) < 2:
        return 0.0
    weight = sum(1.0 + math.log(repeated[stem]) for stem in set(stems) - told) / math.sqrt(8.0 + len(stems))
    opens_turn = _OPENS_TURN if sentence.speaker != "assistant" and not sentence.before else 1.0
    with_image = _WITH_IMAGE if sentence.image_ids and opens_turn > 1.0 else 1.0
    asks = 0.6 if sentence.text.endswith("?") else 1.0
    return weight * opens_turn * with_image * asks * (0.6 if sentence.speaker == "assistant" else 1.0)
