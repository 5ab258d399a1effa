"""The instantiate task: the arguments of one step, from its goal, the question and what earlier steps returned."""

import json
import re
from collections.abc import Callable
from typing import Any

from models.embedded.english import content_stems
from models.embedded.plan import locates_whole_episodes, two_places
from models.embedded.question import parse_question
from models.embedded.question_kinds import Kind
from models.embedded.table_questions import TableQuestion, day_condition, read_table_question
from models.tasks.planning import InstantiateInputs

_WHOLE_EPISODES, _EPISODES_WITH_IMAGES = 3, 6
"""Units asked for where one is a whole episode: the engine's reading window holds about as many; more where images are asked for."""
_ISO_DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


def instantiate(inputs: InstantiateInputs) -> str:
    """Bind one step's arguments; the reply is a JSON object, empty where the rules find nothing to bind."""
    tool = inputs.plan[inputs.step].tool
    arguments = _search(inputs) if tool in ("SemanticMatch", "EventLocate") else _table(inputs, tool)
    return json.dumps(arguments, ensure_ascii=False)


def _search(inputs: InstantiateInputs) -> dict[str, Any]:
    step, fixed, query = inputs.plan[inputs.step], dict(inputs.fixed), _query(inputs)
    described = [image.caption for image in inputs.question_images if image.caption]
    whole = step.tool == "EventLocate" and locates_whole_episodes(inputs.context)
    asks_images = parse_question(inputs.question).kind in (Kind.IMAGE, Kind.IMAGE_COUNT)
    budget = min(inputs.budget, _EPISODES_WITH_IMAGES if asks_images else _WHOLE_EPISODES) if whole else inputs.budget
    arguments: dict[str, Any] = {"query_content": "\n".join([query, *described]), "result_budget": budget}
    if step.tool == "SemanticMatch":
        arguments["retrieval_scope"] = fixed.get("retrieval_scope", "event")
    return arguments


def _query(inputs: InstantiateInputs) -> str:
    """The step's goal; where that is the whole question again, the one of its two sides that is less in what searches found so far."""
    goal = inputs.plan[inputs.step].goal
    found = [earlier.outcome for earlier in inputs.earlier if earlier.tool in ("EventLocate", "SemanticMatch")]
    sides = two_places(parse_question(inputs.question))
    if goal != inputs.question or not found or not sides:
        return goal
    known = {stem for outcome in found for stem in content_stems(outcome)}
    return min(sides, key=lambda side: sum(stem in known for stem in content_stems(side)) / max(len(content_stems(side)), 1))


def _table(inputs: InstantiateInputs, tool: str) -> dict[str, Any]:
    fixed = dict(inputs.fixed).get("table")
    tables = tuple(table for table in inputs.context.tables if fixed is None or table.name == fixed)
    goal = inputs.plan[inputs.step].goal
    wanted = read_table_question(goal, tables, whole=inputs.question) or read_table_question(inputs.question, tables)
    if wanted is None:
        return {"table": fixed} if fixed else {}
    return _ARGUMENTS[tool](wanted, [*wanted.conditions, *_day_of_event(wanted, inputs)], inputs.budget)


def _day_of_event(wanted: TableQuestion, inputs: InstantiateInputs) -> list[dict[str, Any]]:
    """The day of the happening that the question names, as an earlier step found it."""
    days = [_ISO_DAY.search(earlier.outcome) for earlier in inputs.earlier if earlier.tool in ("EventLocate", "SemanticMatch")]
    found = next((day[0] for day in days if day), None)
    return [day_condition(found)] if wanted.event and found else []


def _lookup(wanted: TableQuestion, conditions: list[dict[str, Any]], budget: int) -> dict[str, Any]:
    keys = {one["column"]: one["value"] for one in conditions if one["operator"] == "="}
    return {"table": wanted.table.name, "key_values": keys, "result_budget": budget}


def _filter(wanted: TableQuestion, conditions: list[dict[str, Any]], budget: int) -> dict[str, Any]:
    known = {"column": wanted.column.name, "operator": "is_null", "value": False}
    return {"table": wanted.table.name, "column_filters": [*conditions, known], "result_budget": budget}


def _compute(wanted: TableQuestion, conditions: list[dict[str, Any]], budget: int) -> dict[str, Any]:
    return {
        "table": wanted.table.name,
        "target_column_expression": wanted.column.name,
        "operator": wanted.operator,
        "optional_column_filters": conditions,
    }


def _rank(wanted: TableQuestion, conditions: list[dict[str, Any]], budget: int) -> dict[str, Any]:
    extreme = wanted.extremes[0] if wanted.extremes else None
    return {
        "table": wanted.table.name,
        "target_column_expression": extreme.column.name if extreme else wanted.column.name,
        "order": "descending" if extreme is None or extreme.is_high else "ascending",
        "optional_column_filters": conditions,
        "result_budget": 1,
    }


_ARGUMENTS: dict[str, Callable[[TableQuestion, list[dict[str, Any]], int], dict[str, Any]]] = {
    "Lookup": _lookup,
    "Filter": _filter,
    "Compute": _compute,
    "Rank": _rank,
}
