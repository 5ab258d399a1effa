"""The plan task: which tools gather what a question asks for."""

import json

from models.embedded.question import Asked, parse_question
from models.embedded.question_kinds import Kind
from models.embedded.table_questions import TableQuestion, read_table_question, spoken
from models.tasks.planning import Context, PlanInputs

_COMPUTED = frozenset({Kind.AVERAGE, Kind.HIGHEST, Kind.LOWEST, Kind.TOTAL, Kind.COUNT, Kind.DIFFERENCE, Kind.TREND})
_READ = frozenset({Kind.THING, Kind.QUANTITY, Kind.CLOCK})
_TWO_PLACES = frozenset({Kind.DAYS_BETWEEN, Kind.ORDER, Kind.DEARER})


def plan(inputs: PlanInputs) -> str:
    """Plan for one question; the reply is JSON in the schema of `models.tasks.planning`."""
    steps = _steps(inputs)[: inputs.max_steps]
    return json.dumps({"steps": [{"goal": goal, "tool": tool} for goal, tool in steps]}, ensure_ascii=False)


def _steps(inputs: PlanInputs) -> list[tuple[str, str]]:
    asked = parse_question(inputs.question)
    tools = {tool.name for tool in inputs.context.tools}
    wanted = None if inputs.question_images else read_table_question(inputs.question, inputs.context.tables)
    if wanted and "Compute" in tools and _is_for_a_table(asked, wanted):
        return _table_steps(asked, wanted, inputs.question, can_locate="EventLocate" in tools)
    if "SemanticMatch" not in tools:
        return [(inputs.question, "Filter")]
    return _search_steps(asked, inputs)


def _is_for_a_table(asked: Asked, wanted: TableQuestion) -> bool:
    """Computing needs a table; a single value is looked up where the question says that it was logged, shown or of some day."""
    if asked.kind in _COMPUTED or wanted.extremes:
        return True
    return asked.kind in _READ and bool(wanted.conditions or wanted.event)


def _table_steps(asked: Asked, wanted: TableQuestion, question: str, *, can_locate: bool) -> list[tuple[str, str]]:
    if len(wanted.extremes) > 1:
        return [(f"the {'highest' if one.is_high else 'lowest'} {spoken(one.column)}", "Rank") for one in wanted.extremes]
    if wanted.extremes and wanted.wants_day:
        return [(question, "Rank")]
    if asked.kind is Kind.DIFFERENCE and asked.from_text and asked.from_picture:
        label = spoken(wanted.column)
        return [(f"the {label} that was written last", "Compute"), (f"the {label} that a picture shows", "Compute")]
    if wanted.event and can_locate:
        return [(f"When was {wanted.event}?", "EventLocate"), (question, "Compute")]
    return [(question, "Compute")]


def _search_steps(asked: Asked, inputs: PlanInputs) -> list[tuple[str, str]]:
    tool = "EventLocate" if locates_whole_episodes(inputs.context) else "SemanticMatch"
    return [(place, tool) for place in two_places(asked) or (inputs.question,)]


def two_places(asked: Asked) -> tuple[str, ...]:
    """The happenings that a question compares or lists, each to be searched by itself; () for other questions."""
    return tuple(asked.sides) if asked.kind in _TWO_PLACES or asked.lists_two else ()


def locates_whole_episodes(context: Context) -> bool:
    """Whether EventLocate returns the episodes around events with their content, as its card says then."""
    return any(tool.name == "EventLocate" and "whole episodes" in tool.function for tool in context.tools)
