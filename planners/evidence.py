"""From an executed plan to what the answer model is shown: rows and results as text, memory units with their images."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from data.images import Picture
from memory.adamm.tools.result import EvidenceUnit, ToolResult
from models.requests import TokenCounter
from models.tasks.answer import ShownMemory, ShownPicture, ShownStep, ShownText
from planners.execution import ExecutedStep, Execution, is_analytic

Compose = Callable[[ToolResult], tuple[ShownMemory, ...] | None]
"""Renders a retrieval result in a way of its own, all units of the call together; None where it has none."""


def shown_steps(execution: Execution, *, pictures: Mapping[str, Picture], compose: Compose | None = None) -> tuple[ShownStep, ...]:
    """Render every step that was tried, with the pictures of retrieved units.

    Args:
        execution: the executed plan.
        pictures: the history's pictures by image id; an image without one is named in its unit's text only.
        compose: renders some retrieval results in its own way (the joint pipeline's selector).

    Returns:
        The steps in order; memories are numbered from 1 through all of them, and an image is shown where it comes first.
    """
    steps = []
    n_memories = 0
    seen: set[str] = set()
    for number, done in enumerate(execution.steps, start=1):
        memories = _memories(done, pictures, seen, compose)
        memories = tuple(replace(memory, number=n_memories + place) for place, memory in enumerate(memories, start=1))
        n_memories += len(memories)
        steps.append(ShownStep(number, done.step.goal, done.step.tool, done.arguments, _items(done), memories))
    return tuple(steps)


def step_tokens(steps: tuple[ShownStep, ...], counter: TokenCounter) -> int:
    """C of the shown steps: every line, heading and picture, as rendered."""
    memories = [memory for step in steps for memory in step.memories]
    lines = [step.line for step in steps] + [item.line for step in steps for item in step.items]
    lines += [memory.line for memory in memories] + [item.line for memory in memories for item in memory.items]
    pictures = [item.picture for memory in memories for item in memory.items if isinstance(item, ShownPicture)]
    return sum(counter.count_text(line) for line in lines) + sum(counter.count_image(one.width, one.height) for one in pictures)


def _items(done: ExecutedStep) -> tuple[ShownText, ...]:
    if done.result is None:
        return (ShownText("note", done.outcome),)
    if not done.result.units:
        return (ShownText("note", done.outcome),)
    return tuple(ShownText("result", unit.text) for unit in done.result.units) if is_analytic(done) else ()


def _memories(done: ExecutedStep, pictures: Mapping[str, Picture], seen: set[str], compose: Compose | None) -> tuple[ShownMemory, ...]:
    if done.result is None or is_analytic(done):
        return ()
    composed = compose(done.result) if compose else None
    if composed is not None:
        return composed
    dates = [unit["time"] for unit in done.result.returned["ranked_memory_units"]]
    return tuple(_memory(unit, date, pictures, seen) for unit, date in zip(done.result.units, dates, strict=True))


def _memory(unit: EvidenceUnit, date: str, pictures: Mapping[str, Picture], seen: set[str]) -> ShownMemory:
    shown = [image_id for image_id in unit.image_ids if image_id in pictures and image_id not in seen]
    seen.update(shown)
    images = tuple(ShownPicture("image", image_id, pictures[image_id]) for image_id in shown)
    return ShownMemory(0, date, (ShownText("unit", unit.text), *images))
