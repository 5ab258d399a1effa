"""Questions answered through plans: planned or steered step by step, then asked once over the evidence and scored."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from data.history import Question
from data.images import Picture
from envs.metrics.text import MetricProfile
from models.requests import TokenCounter
from models.tasks.answer import AnswerInputs, ShownStep, answer_request
from models.tasks.base import SeenImage
from planners.context import PlanningContext
from planners.evidence import Compose, shown_steps, step_tokens
from planners.execution import Asking, Execution, Subject, plan_and_run


@dataclass(frozen=True)
class PlannedQuestion:
    """One question with its planning context and the opened tools of its memory.

    ``query``: (d,) float32, unit norm. ``pictures`` are the history's by image id, ``round_ids`` its rounds in order. ``compose`` renders
    memory episodes (the joint pipeline), None where units are shown as they are.
    """

    question: Question
    subject: Subject
    instruction: str
    query: NDArray[np.float32]
    context: PlanningContext
    pictures: Mapping[str, Picture]
    round_ids: tuple[str, ...]
    compose: Compose | None

    @property
    def images(self) -> tuple[SeenImage, ...]:
        """The question's own images."""
        return self.subject.question_images


@dataclass(frozen=True)
class PlannedOutcome:
    """What came of one question: its execution, the evidence shown, and the scored answer.

    ``evidence_tokens`` is C of the shown steps; ``total_tokens`` are the input and output tokens of every call of the question, planning
    and answering (`tokens_per_question`). ``recall`` is the share of gold rounds that the evidence stands on, None without gold rounds.
    """

    execution: Execution
    shown: tuple[ShownStep, ...]
    request_key: str
    answer: str
    f1: float
    bleu1: float | None
    exact_match: bool | None
    evidence_tokens: int
    planning_tokens: int
    total_tokens: int
    recall: float | None


class PlanAnswerer:
    """Asks the answer model over executed plans, and scores; for use with `planners.execution.run_together`."""

    def __init__(self, *, counter: TokenCounter, metric: MetricProfile) -> None:
        self.metric = metric
        self._counter = counter

    def plan_and_answer(self, planned: PlannedQuestion) -> Asking[PlannedOutcome]:
        """Let the model plan, run the plan, and answer."""
        execution = yield from plan_and_run(planned.subject)
        return (yield from self.answer(planned, execution))

    def answer(self, planned: PlannedQuestion, execution: Execution) -> Asking[PlannedOutcome]:
        """Ask over what an execution gathered, which may be nothing, and score the answer."""
        shown = shown_steps(execution, pictures=planned.pictures, compose=planned.compose)
        question = planned.question
        reply = yield answer_request(AnswerInputs(question.text, planned.images, (), planned.instruction, shown))
        return PlannedOutcome(
            execution=execution,
            shown=shown,
            request_key=reply.key,
            answer=reply.text,
            f1=self.metric.f1(reply.text, question.answer),
            bleu1=self.metric.bleu1(reply.text, question.answer),
            exact_match=self.metric.exact_match(reply.text, question.answer),
            evidence_tokens=step_tokens(shown, self._counter),
            planning_tokens=execution.tokens,
            total_tokens=execution.tokens + reply.usage.input_tokens + reply.usage.output_tokens,
            recall=_recall(planned, execution),
        )


def _recall(planned: PlannedQuestion, execution: Execution) -> float | None:
    gold = planned.question.clue_round_ids
    if not gold:
        return None
    orders = {order for step in execution.steps if step.result is not None for unit in step.result.units for order in unit.rounds}
    rounds = {planned.round_ids[order] for order in orders}
    return sum(round_id in rounds for round_id in gold) / len(gold)
