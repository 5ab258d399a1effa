"""The judge tasks: how good answers are beside their gold answers, in five levels or as one of three outcomes.

Five levels are asked for one answer in a call (the reply is one object) or for several (the reply lists them by number).
A benchmark's published scorer snaps the five levels to three; both are kept.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from models.errors import ReplyError
from models.requests import Request, TextPart
from models.tasks.base import json_object, task_request

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
OutcomeName = Literal["Correct", "Hallucination", "Omission"]
OUTCOMES: tuple[OutcomeName, ...] = get_args(OutcomeName)


@dataclass(frozen=True)
class Judged:
    """An answer to be judged."""

    question: str
    gold: str
    answer: str

    @property
    def text(self) -> str:
        """As it is shown to the judge; an empty answer is said to be one."""
        return f"Question: {self.question}\nGold answer: {self.gold}\nAnswer: {self.answer or '(no answer)'}"


@dataclass(frozen=True)
class JudgeInputs:
    """The answers that one call judges."""

    items: tuple[Judged, ...]


@dataclass(frozen=True)
class Judgement:
    """A level as the judge gave it, in [0, 1], and its reason."""

    raw: float
    reason: str

    @property
    def snapped(self) -> float:
        """The level as Mem-Gallery's and MemEye's scorers count it: under 0.25 is 0, under 0.75 is 0.5, else 1."""
        return 0.0 if self.raw < 0.25 else 0.5 if self.raw < 0.75 else 1.0


_JUDGEMENT: dict[str, Any] = {"score": {"enum": list(LEVELS)}, "reason": {"type": "string"}}


def _judgement_schema(**more: Any) -> dict[str, Any]:
    properties = {**more, **_JUDGEMENT}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


JUDGE_SCHEMA = _judgement_schema()
JUDGE_SEVERAL_SCHEMA = {
    "type": "object",
    "properties": {"judgements": {"type": "array", "items": _judgement_schema(number={"type": "integer", "minimum": 1})}},
    "required": ["judgements"],
    "additionalProperties": False,
}


def judge_request(inputs: JudgeInputs) -> Request:
    """Ask for the level of each answer; one answer gives the single form, several the list."""
    if len(inputs.items) == 1:
        return task_request("judge", "judge", inputs, [TextPart(inputs.items[0].text)], JUDGE_SCHEMA)
    texts: list[Any] = [TextPart(f"Number {number}\n{item.text}") for number, item in enumerate(inputs.items, start=1)]
    return task_request("judge", "judge", inputs, texts, JUDGE_SEVERAL_SCHEMA)


def parse_judge(text: str, n: int) -> tuple[Judgement, ...]:
    """Check and parse the reply about ``n`` answers, in their order; raises `ReplyError`."""
    reply = json_object(text, "judge")
    if n == 1 and "judgements" not in reply:
        return (_judgement(reply, text),)
    listed = reply.get("judgements")
    found = {item.get("number"): item for item in listed if isinstance(item, dict)} if isinstance(listed, list) else {}
    missing = [number for number in range(1, n + 1) if number not in found]
    if missing:
        raise ReplyError(f"judge reply: no judgement of number {', '.join(map(str, missing[:10]))} in {text[:300]!r}")
    return tuple(_judgement(found[number], text) for number in range(1, n + 1))


def _judgement(item: dict[str, Any], text: str) -> Judgement:
    score, reason = item.get("score"), item.get("reason", "")
    if not isinstance(score, int | float) or isinstance(score, bool) or not 0 <= score <= 1 or not isinstance(reason, str):
        raise ReplyError(f"judge reply: score must be a number from 0 to 1 and reason a text in {text[:300]!r}")
    return Judgement(float(score), reason.strip())


OUTCOME_SCHEMA = {
    "type": "object",
    "properties": {"outcome": {"enum": list(OUTCOMES)}, "reason": {"type": "string"}},
    "required": ["outcome", "reason"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class OutcomeInputs:
    """The answer that one call sorts into correct, hallucination or omission (WorldMemArena)."""

    item: Judged


def outcome_request(inputs: OutcomeInputs) -> Request:
    """Ask which of the three outcomes an answer is."""
    return task_request("judge", "outcome", inputs, [TextPart(inputs.item.text)], OUTCOME_SCHEMA)


def parse_outcome(text: str) -> OutcomeName:
    """Check and parse the reply of `outcome_request`; raises `ReplyError`."""
    outcome = json_object(text, "outcome").get("outcome")
    for name in OUTCOMES:
        if outcome == name:
            return name
    raise ReplyError(f"outcome reply: outcome must be one of {', '.join(OUTCOMES)} in {text[:300]!r}")
