"""The answer task: a question with the evidence that was composed for it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from data.images import Picture
from models.requests import ImagePart, Request, TextPart
from models.tasks.base import PROMPTS, SeenImage, seen_image_parts, task_request


@dataclass(frozen=True)
class ShownText:
    """The text of one evidence form of one memory."""

    form: str
    text: str

    @property
    def line(self) -> str:
        """As rendered in the request and counted in C(z)."""
        return f"{self.form}: {self.text}"


@dataclass(frozen=True)
class ShownPicture:
    """One picture of one evidence form of one memory, after its id."""

    form: str
    image_id: str
    picture: Picture

    @property
    def line(self) -> str:
        """The text before the picture, as rendered in the request and counted in C(z)."""
        return f"{self.form} {self.image_id}:"


@dataclass(frozen=True)
class ShownMemory:
    """A memory that shows at least one form; ``number`` counts from 1 among those."""

    number: int
    date: str
    items: tuple[ShownText | ShownPicture, ...]

    @property
    def line(self) -> str:
        """The memory's heading, as rendered in the request and counted in C(z)."""
        return memory_heading(self.number, self.date)


def memory_heading(number: int, date: str) -> str:
    """The line that opens a memory."""
    return f"[Memory {number}] {date}"


@dataclass(frozen=True)
class ShownStep:
    """A step of an executed plan: its goal, tool and arguments (JSON), and what it returned.

    ``items`` are the rows or results of an analytic tool, or the message of a step that failed; ``memories`` are what a retrieval tool
    found.
    """

    number: int
    goal: str
    tool: str
    arguments: str
    items: tuple[ShownText, ...]
    memories: tuple[ShownMemory, ...]

    @property
    def line(self) -> str:
        """The step's heading, as rendered in the request and counted in C(z)."""
        return f"[Step {self.number}] {self.tool} {self.arguments}\nGoal: {self.goal}"


@dataclass(frozen=True)
class AnswerInputs:
    """A question with its images, what it may use, and the benchmark's format instruction ("" for none).

    What may be used are memories composed for the question, or the steps of an executed plan. The question's images have no ids here,
    because the messages give them none.
    """

    question: str
    question_images: tuple[SeenImage, ...]
    memories: tuple[ShownMemory, ...]
    instruction: str = ""
    steps: tuple[ShownStep, ...] = ()


@cache
def answer_formats() -> Mapping[str, Mapping[str, str]]:
    """What each benchmark adds to a question, by benchmark and question category."""
    formats: dict[str, dict[str, str]] = tomllib.loads((PROMPTS / "answer_formats.toml").read_text(encoding="utf-8"))
    return formats


NO_MEMORY = "No memory shown."


def answer_request(inputs: AnswerInputs) -> Request:
    """Ask the question over the shown memories; the reply is the answer, as short plain text."""
    parts: list[TextPart | ImagePart] = []
    for memory in inputs.memories:
        parts += _memory_parts(memory)
    for step in inputs.steps:
        parts.append(TextPart(step.line))
        parts += [TextPart(item.line) for item in step.items]
        for memory in step.memories:
            parts += _memory_parts(memory)
    if not parts:
        parts.append(TextPart(NO_MEMORY))
    parts.append(TextPart(f"Question: {inputs.question}"))
    if inputs.instruction:
        parts.append(TextPart(inputs.instruction))
    for image in inputs.question_images:
        parts += seen_image_parts(image, "Question image")
    return task_request("answer", "answer", inputs, parts)


def _memory_parts(memory: ShownMemory) -> list[TextPart | ImagePart]:
    parts: list[TextPart | ImagePart] = [TextPart(memory.line)]
    for item in memory.items:
        parts.append(TextPart(item.line))
        if isinstance(item, ShownPicture):
            parts.append(ImagePart(item.picture))
    return parts
