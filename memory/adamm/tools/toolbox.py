"""A tool call from a model: checked as what it is, hostile text, then run."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from pydantic import ValidationError

from data.images import Picture
from memory.adamm.model import AdaMMMemory
from memory.adamm.tools.analytic import AnalyticTools
from memory.adamm.tools.arguments import ANALYTIC_TOOLS, TOOLS, Arguments, Condition, EventLocate, KeyValue, SemanticMatch
from memory.adamm.tools.columns import unknown_name
from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.result import ToolResult
from memory.adamm.tools.selection import TableStore

_MAX_CHARACTERS = 50_000
_N_PROBLEMS = 10
_LONGEST_KEY = 100
_INNER_KEYS = {*Condition.model_fields, *KeyValue.model_fields}


class Retrieval(Protocol):
    """What runs the retrieval tools: `memory.adamm.tools.retrieval.RetrievalTools` does."""

    def run(self, arguments: SemanticMatch | EventLocate, *, allowance: int, query_image: Picture | None = None) -> ToolResult:
        """Run one call with checked arguments."""


class ToolBox:
    """The tools over one memory, as a model calls them."""

    def __init__(self, memory: AdaMMMemory, *, tables: TableStore, retrieval: Retrieval | None) -> None:
        """Prepare the tools.

        Args:
            memory: whose tables the analytic tools read.
            tables: the rows of these tables.
            retrieval: the retrieval tools; None leaves the analytic ones.
        """
        self._analytic = AnalyticTools(memory.tables, tables)
        self._retrieval = retrieval

    def call(self, tool: str, arguments: Mapping[str, Any] | str, *, allowance: int, query_image: Picture | None = None) -> ToolResult:
        """Check a call and run it; nothing is ever changed.

        Args:
            tool: the tool's name, exactly.
            arguments: an object, or its JSON text, as a model gave it.
            allowance: the most units of evidence it may return.
            query_image: the picture that belongs to the query of a retrieval tool, if there is one.

        Raises:
            ToolError: the call cannot be run; the error says what is wrong and what would do.
            memory.errors.BankError: the memory's file is missing or damaged.
        """
        if allowance < 1:
            raise ToolError("budget", "allowance", "no units of evidence are left", "answering from what was found")
        checked = parse_arguments(tool, arguments)
        if not isinstance(checked, SemanticMatch | EventLocate):
            return self._analytic.run(checked, allowance=allowance)
        if self._retrieval is None:
            raise ToolError("unknown_tool", "tool", f"{tool} is not available here", ", ".join(ANALYTIC_TOOLS))
        return self._retrieval.run(checked, allowance=allowance, query_image=query_image)


def parse_arguments(tool: str, arguments: Mapping[str, Any] | str) -> Arguments:
    """Check the arguments of a tool, whatever they are.

    Raises:
        ToolError: there is no such tool, or its arguments are not of its types; all problems at once, to ten.
    """
    if tool not in TOOLS:
        raise unknown_name("unknown_tool", "tool", tool, [*TOOLS], [*TOOLS])
    given = _object(arguments) if isinstance(arguments, str) else arguments
    keys = ", ".join(TOOLS[tool].model_fields)
    if not isinstance(given, Mapping):
        raise ToolError("arguments", "arguments", "are no object", f"an object with the keys {keys}")
    try:
        return TOOLS[tool].model_validate(dict(given))
    except ValidationError as error:
        problems: dict[str, list[str]] = {}
        for one in error.errors(include_input=False, include_url=False, include_context=False)[:_N_PROBLEMS]:
            problems.setdefault(_path(one["loc"], is_extra=one["type"] == "extra_forbidden"), []).append(one["msg"])
        first, *others = [(where, " or ".join(dict.fromkeys(messages))) for where, messages in problems.items()]
        problem = "; ".join([first[1], *(f"{where}: {message}" for where, message in others)])
        raise ToolError("arguments", first[0], problem, f"{tool} with the keys {keys}") from error


def _object(text: str) -> Any:
    if len(text) > _MAX_CHARACTERS:
        raise ToolError("arguments", "arguments", f"are of more than {_MAX_CHARACTERS} characters", "a JSON object")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ToolError("arguments", "arguments", f"are not JSON: {error}", "a JSON object") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _path(location: tuple[int | str, ...], *, is_extra: bool) -> str:
    """Where in the arguments a problem is, without the alternatives of a type that pydantic adds."""
    path = (str(location[0])[:_LONGEST_KEY] if location else "") or "arguments"
    for step in location[1:]:
        if isinstance(step, str) and not (step in _INNER_KEYS or is_extra):
            break
        path += f"[{step}]" if isinstance(step, int) else f".{step[:_LONGEST_KEY]}"
    return path
