"""The planning tasks: an abstract plan over the memory's tools, and the arguments of one step (AdaMM, §3.5.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.errors import ReplyError
from models.requests import ImagePart, Request, TextPart, canonical_json
from models.tasks.base import SeenImage, json_object, seen_image_parts, task_request


@dataclass(frozen=True)
class ContextColumn:
    """A column of a table in the planning context; ``unit`` may be "", ``samples`` are source texts."""

    name: str
    type: str
    unit: str
    description: str
    samples: tuple[str, ...]

    @property
    def text(self) -> str:
        """One line of μ_T."""
        unit = f", {self.unit}" if self.unit else ""
        samples = f" For example: {' | '.join(self.samples)}" if self.samples else ""
        return f"- {self.name} ({self.type}{unit}): {self.description}{samples}"


@dataclass(frozen=True)
class ContextTable:
    """A table as the planner sees it: μ_T of Eq. 9."""

    name: str
    description: str
    n_rows: int
    columns: tuple[ContextColumn, ...]

    @property
    def text(self) -> str:
        """Name, description, columns and sampled values."""
        return "\n".join([f"Table {self.name} ({self.n_rows} rows): {self.description}", *(column.text for column in self.columns)])


@dataclass(frozen=True)
class ContextEpisode:
    """An AdaMM episode as the planner sees it: μ_P of Eq. 9, with its first and last date ("" where there is none)."""

    dates: tuple[str, str]
    description: str

    @property
    def text(self) -> str:
        """Dates and description."""
        first, last = self.dates
        return f"Episode {first if first == last else f'{first} to {last}'}: {self.description}"


@dataclass(frozen=True)
class ToolCard:
    """A tool as the planner sees it: its function d and the keys of its arguments Θ (Eq. 8)."""

    name: str
    function: str
    arguments: str

    @property
    def text(self) -> str:
        """One line."""
        return f"{self.name}({self.arguments}): {self.function}"


@dataclass(frozen=True)
class Context:
    """The planning context D_q: what of the memory may matter for a question, and which tools apply to it."""

    tables: tuple[ContextTable, ...]
    episodes: tuple[ContextEpisode, ...]
    tools: tuple[ToolCard, ...]

    @property
    def text(self) -> str:
        """As rendered in both planning requests."""
        parts = ["Tools:\n" + "\n".join(tool.text for tool in self.tools)]
        parts += [table.text for table in self.tables] + [episode.text for episode in self.episodes]
        return "\n\n".join(parts)


@dataclass(frozen=True)
class AbstractStep:
    """One step of an abstract plan: the information goal g and the tool ξ, without arguments."""

    goal: str
    tool: str


# Plan: an abstract plan


@dataclass(frozen=True)
class PlanInputs:
    """A question with its images and the planning context; at most ``max_steps`` steps share ``budget`` evidence units."""

    question: str
    question_images: tuple[SeenImage, ...]
    context: Context
    max_steps: int
    budget: int


def plan_schema(tools: Sequence[str], max_steps: int) -> dict[str, Any]:
    """The JSON schema of a plan over these tools."""
    step = {
        "type": "object",
        "properties": {"goal": {"type": "string", "minLength": 1}, "tool": {"enum": list(tools)}},
        "required": ["goal", "tool"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"steps": {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}},
        "required": ["steps"],
        "additionalProperties": False,
    }


def plan_request(inputs: PlanInputs) -> Request:
    """Ask for the shortest valid abstract plan."""
    limits = f"At most {inputs.max_steps} steps; together they may return {inputs.budget} units of evidence."
    parts: list[TextPart | ImagePart] = [TextPart(inputs.context.text), TextPart(limits), TextPart(f"Question: {inputs.question}")]
    for image in inputs.question_images:
        parts += seen_image_parts(image, "Question image")
    schema = plan_schema([tool.name for tool in inputs.context.tools], inputs.max_steps)
    return task_request("plan", "plan", inputs, parts, schema, lenient=True)


def parse_plan(text: str, tools: Sequence[str], max_steps: int) -> tuple[AbstractStep, ...]:
    """Check and parse a plan, cut to ``max_steps``; raises `ReplyError`."""
    steps = json_object(text, "plan").get("steps")
    if not isinstance(steps, list) or not steps:
        raise ReplyError(f"plan reply: needs at least one step in {text[:300]!r}")
    for number, step in enumerate(steps[:max_steps], start=1):
        if not isinstance(step, dict) or not isinstance(step.get("goal"), str) or step.get("tool") not in tools:
            raise ReplyError(f"plan reply: step {number} needs a goal and one of the tools {', '.join(tools)} in {text[:300]!r}")
    return tuple(AbstractStep(step["goal"].strip(), step["tool"]) for step in steps[:max_steps])


# Instantiate: the arguments of one step (Eq. 10)


@dataclass(frozen=True)
class EarlierStep:
    """A step that was run before: its tool, its arguments as JSON, and what came of it as shown to a model."""

    tool: str
    arguments: str
    outcome: str

    @property
    def text(self) -> str:
        """As rendered."""
        return f"{self.tool} {self.arguments}\n{self.outcome}"


@dataclass(frozen=True)
class InstantiateInputs:
    """One step of a plan whose arguments are wanted.

    ``step`` is its place in ``plan``, from 0. ``fixed`` are arguments that are decided already, by name. ``budget`` is the most
    evidence units it may return. ``failed`` and ``problem`` are the arguments of a first try, as text, and what was wrong with them
    (both "" at the first try).
    """

    question: str
    question_images: tuple[SeenImage, ...]
    context: Context
    plan: tuple[AbstractStep, ...]
    step: int
    earlier: tuple[EarlierStep, ...]
    budget: int
    fixed: tuple[tuple[str, str], ...] = ()
    failed: str = ""
    problem: str = ""


def instantiate_request(inputs: InstantiateInputs, schema: Mapping[str, Any]) -> Request:
    """Ask for the step's arguments; ``schema`` is the JSON schema of the tool's."""
    listed = "\n".join(f"{number}. {step.tool}: {step.goal}" for number, step in enumerate(inputs.plan, start=1))
    parts: list[TextPart | ImagePart] = [
        TextPart(inputs.context.text),
        TextPart(f"Question: {inputs.question}"),
        TextPart(f"Plan:\n{listed}"),
    ]
    for image in inputs.question_images:
        parts += seen_image_parts(image, "Question image")
    parts += [TextPart(f"Result of step {number}: {earlier.text}") for number, earlier in enumerate(inputs.earlier, start=1)]
    step = inputs.plan[inputs.step]
    parts.append(TextPart(f"Step {inputs.step + 1}, {step.tool}: {step.goal}\nIt may return at most {inputs.budget} units."))
    parts += [TextPart(f"Decided already: {name} = {value}") for name, value in inputs.fixed]
    if inputs.problem:
        parts.append(TextPart(f"These arguments could not be used: {inputs.failed}\nProblem: {inputs.problem}"))
    parts.append(TextPart(f"JSON schema of the arguments: {canonical_json(schema)}"))
    return task_request("plan", "instantiate", inputs, parts, schema, lenient=True)


def parse_instantiate(text: str) -> dict[str, Any]:
    """The arguments, unchecked but for being an object; raises `ReplyError`."""
    return json_object(text, "instantiate")
