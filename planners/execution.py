"""Plans and runs tool calls for questions, many at once (AdaMM, §3.5.2, Eq. 10).

A question's progress is a generator that yields the model requests it needs and is sent their replies; `run_together` drives
many of them in step, so that all that wait for the model at one time go out as one batch.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from data.images import Picture
from memory.adamm.tools.arguments import ANALYTIC_TOOLS, json_schema
from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.result import ToolResult
from memory.adamm.tools.toolbox import ToolBox
from models.errors import ReplyError
from models.requests import Reply, Request, canonical_json
from models.tasks.base import SeenImage
from models.tasks.planning import (
    AbstractStep,
    Context,
    EarlierStep,
    InstantiateInputs,
    PlanInputs,
    instantiate_request,
    parse_instantiate,
    parse_plan,
    plan_request,
)

MAX_STEPS = 3
BUDGET = 10
"""Evidence units that all steps of a plan share (Table 5)."""

Result = TypeVar("Result")
Asking = Generator[Request, Reply, Result]


@dataclass(frozen=True)
class Subject:
    """What is planned for: a question, its images, its planning context and the tools of its memory.

    ``progressive``: False withholds earlier results from later instantiations (ablation).
    """

    question: str
    question_images: tuple[SeenImage, ...]
    context: Context
    tools: ToolBox
    progressive: bool = True

    @property
    def query_image(self) -> Picture | None:
        """The question's first picture, the visual query of Eq. 13."""
        return next((image.picture for image in self.question_images if image.picture is not None), None)


@dataclass(frozen=True)
class ExecutedStep:
    """A step that was tried: ``failures`` are the typed errors, at most two; ``result`` is None where the step was skipped.

    ``arguments`` is the last try's JSON text as the model gave it.
    """

    step: AbstractStep
    arguments: str
    failures: tuple[str, ...]
    result: ToolResult | None

    @property
    def n_units(self) -> int:
        """Evidence units that the step used."""
        return 0 if self.result is None else len(self.result.units)

    @property
    def outcome(self) -> str:
        """What came of it, as shown to a model."""
        if self.result is None:
            return f"This step failed: {self.failures[-1]}"
        return "\n".join(unit.text for unit in self.result.units) or "Nothing was found."


@dataclass
class Execution:
    """The progress of one question: its plan, the steps run so far, and every model reply on the way."""

    plan: tuple[AbstractStep, ...] = ()
    steps: list[ExecutedStep] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    plan_failure: str = ""

    @property
    def units_left(self) -> int:
        """Evidence units of the shared budget that are left."""
        return BUDGET - sum(step.n_units for step in self.steps)

    @property
    def tokens(self) -> int:
        """Input and output tokens of every planning call so far."""
        return sum(reply.usage.input_tokens + reply.usage.output_tokens for reply in self.replies)


def plan_and_run(subject: Subject) -> Asking[Execution]:
    """Ask for an abstract plan, then instantiate and run its steps in order, each with ⌈units left / steps left⌉ units.

    A plan that cannot be read leaves the execution without steps and says so; a step that fails twice is skipped and recorded.
    """
    execution = Execution()
    names = [tool.name for tool in subject.context.tools]
    reply = yield plan_request(PlanInputs(subject.question, subject.question_images, subject.context, MAX_STEPS, BUDGET))
    execution.replies.append(reply)
    try:
        execution.plan = parse_plan(reply.text, names, MAX_STEPS)
    except ReplyError as error:
        execution.plan_failure = str(error)
    for number in range(len(execution.plan)):
        if execution.units_left < 1:
            break
        steps_left = len(execution.plan) - number
        yield from run_step(subject, execution, number, allowance=-(-execution.units_left // steps_left))
    return execution


def run_step(
    subject: Subject, execution: Execution, number: int, *, allowance: int, fixed: Mapping[str, str] | None = None
) -> Asking[ExecutedStep]:
    """Instantiate and run step ``number`` of the execution's plan, repairing it once, and add it to the execution.

    Args:
        subject: the question.
        execution: its progress; the step is appended to it.
        number: the step's place in the plan, from 0.
        allowance: the most units that it may return.
        fixed: arguments that are decided already, by name; they replace what the model says.
    """
    step = execution.plan[number]
    earlier = tuple(EarlierStep(done.step.tool, done.arguments, done.outcome) for done in execution.steps) if subject.progressive else ()
    asked = InstantiateInputs(
        subject.question,
        subject.question_images,
        subject.context,
        execution.plan,
        number,
        earlier,
        allowance,
        tuple((fixed or {}).items()),
    )
    failures: list[str] = []
    arguments = ""
    result = None
    for _ in range(2):
        again = {"failed": arguments, "problem": failures[-1]} if failures else {}
        reply = yield instantiate_request(InstantiateInputs(**(vars(asked) | again)), json_schema(step.tool))
        execution.replies.append(reply)
        arguments = reply.text
        try:
            given: dict[str, Any] = parse_instantiate(reply.text) | dict(fixed or {})
            arguments = canonical_json(given)
            result = subject.tools.call(step.tool, given, allowance=allowance, query_image=subject.query_image)
            break
        except (ReplyError, ToolError) as error:
            failures.append(str(error))
    done = ExecutedStep(step, arguments, tuple(failures), result)
    execution.steps.append(done)
    return done


def run_together(askings: Sequence[Asking[Result]], generate: Callable[[Sequence[Request]], list[Reply]]) -> list[Result]:
    """Drive many generators in step, one batch of requests a round trip; returns their results, in order."""
    results: dict[int, Result] = {}
    waiting: dict[int, Request] = {}

    def advance(place: int, reply: Reply | None) -> None:
        try:
            waiting[place] = next(askings[place]) if reply is None else askings[place].send(reply)
        except StopIteration as stop:
            results[place] = stop.value

    for place in range(len(askings)):
        advance(place, None)
    while waiting:
        asked = dict(waiting)
        waiting.clear()
        for place, reply in zip(asked, generate([*asked.values()]), strict=True):
            advance(place, reply)
    return [results[place] for place in range(len(askings))]


def is_analytic(step: ExecutedStep) -> bool:
    """Whether a step reads tables."""
    return step.step.tool in ANALYTIC_TOOLS
