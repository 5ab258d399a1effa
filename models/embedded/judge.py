"""The judge tasks by rules: how much of the gold answer's words an answer has, and how much else."""

import json

from models.embedded.english import stem, stem_set, words
from models.tasks.judge import Judged, JudgeInputs, OutcomeInputs, OutcomeName

_LEVELS = ((1.0, 1.0), (0.75, 0.75), (0.4, 0.5), (1e-9, 0.25))
"""From which share of common stems on an answer gets which level."""
_REFUSAL = ("not", "mention")


def judge(inputs: JudgeInputs) -> str:
    """Give each answer a level; the reply is JSON in the schema of `models.tasks.judge`."""
    judgements = [{"score": _level(item), "reason": f"{_shared(item):.0%} of the words are shared"} for item in inputs.items]
    if len(judgements) == 1:
        return json.dumps(judgements[0])
    return json.dumps({"judgements": [{"number": number, **one} for number, one in enumerate(judgements, start=1)]})


def outcome(inputs: OutcomeInputs) -> str:
    """Sort one answer into correct, hallucination or omission; the reply is JSON."""
    item = inputs.item
    refuses = not item.answer.strip() or all(word in item.answer.casefold() for word in _REFUSAL)
    name: OutcomeName = "Correct" if _level(item) >= 0.75 else "Omission" if refuses else "Hallucination"
    return json.dumps({"outcome": name, "reason": f"{_shared(item):.0%} of the words are shared"})


def _level(item: Judged) -> float:
    shared = _shared(item)
    return next((level for share, level in _LEVELS if shared >= share), 0.0)


def _shared(item: Judged) -> float:
    """The harmonic mean of how much of the gold and of the answer is common, over sets of content words."""
    gold, answer = (stem_set(text) or {stem(word) for word in words(text)} for text in (item.gold, item.answer))
    common = len(gold & answer)
    return 2 * common / (len(gold) + len(answer)) if common else 0.0
