"""Answers over the steps of an executed plan: results of tables first, else whatever memories the steps show."""

import re
from dataclasses import replace
from decimal import Decimal

from data.values import format_number
from models.embedded.quantities import quantities
from models.embedded.question import parse_question
from models.embedded.question_kinds import Kind
from models.tasks.answer import AnswerInputs, ShownStep

_RESULT = re.compile(r"^result: (?P<result>.+)$", re.MULTILINE)
_FIELD = re.compile(r"(?:^|\| |: )(?P<name>time|source): (?P<value>[^|\n]+)")


def answer_from_tables(inputs: AnswerInputs) -> str:
    """What the results of the analytic steps say; "" where there are none, or none that answers."""
    asked = parse_question(inputs.question)
    computed = [found["result"] for step in inputs.steps if (found := _RESULT.search(_text(step))) and found["result"] != "none"]
    ranked = [step for step in inputs.steps if step.tool == "Rank"]
    if len(ranked) > 1:
        return _same_row(ranked)
    if ranked:
        return _first(ranked[0], "time")
    if not computed:
        return ""
    if asked.kind is Kind.TREND:
        change = _number(computed[0])
        return "" if change is None else "Unchanged" if change == 0 else "Increase" if change > 0 else "Decrease"
    if asked.kind is Kind.DIFFERENCE and len(computed) == 2:
        one, other = _number(computed[0]), _number(computed[1])
        units = [found.unit for result in computed for found in quantities(result)]
        return "" if one is None or other is None else format_number(abs(one - other), units[0] if units else "")
    return computed[-1]


def with_all_memories(inputs: AnswerInputs) -> AnswerInputs:
    """The inputs with the memories of all steps in their place."""
    memories = tuple(memory for step in inputs.steps for memory in step.memories)
    return replace(inputs, memories=(*inputs.memories, *memories), steps=())


def _same_row(ranked: list[ShownStep]) -> str:
    """The occasion that every ranking puts first, or that there is none."""
    sources = {_first(step, "source") for step in ranked}
    return _first(ranked[0], "time") or sources.pop() if len(sources) == 1 else "None"


def _first(step: ShownStep, name: str) -> str:
    found = [match["value"].strip() for match in _FIELD.finditer(_text(step)) if match["name"] == name]
    return found[0] if found else ""


def _text(step: ShownStep) -> str:
    return "\n".join(item.text for item in step.items)


def _number(text: str) -> Decimal | None:
    found = quantities(text)
    return found[0].value if found else None
