"""Calls as a model makes them: what of them is refused, and the schemas that hold a model to the types."""

import json
from typing import Any

import jsonschema
import pytest

from memory.adamm.model import AdaMMMemory
from memory.adamm.tools.arguments import ANALYTIC_TOOLS, TOOLS, EventLocate, SemanticMatch, json_schema
from memory.adamm.tools.errors import ToolError
from memory.adamm.tools.result import ToolResult
from memory.adamm.tools.toolbox import ToolBox, parse_arguments
from models.openai_compatible.structured import find_json
from models.reply_schema import json_problem
from tests.memory.adamm.tools.logs import open_tools

FILTER = {"column": "distance", "operator": ">", "value": 5}
CALLS: dict[str, dict[str, Any]] = {
    "Lookup": {"table": "training_log", "key_values": [{"column": "time", "value": "2026-03-10"}]},
    "Filter": {"table": "training_log", "column_filters": [FILTER, {"column": "done", "operator": "in", "value": [True, "yes"]}]},
    "Compute": {
        **{"table": "training_log", "target_column_expression": "heart_rate", "operator": "average"},
        **{"optional_column_filters": [FILTER], "group_by": "done"},
    },
    "Rank": {"table": "training_log", "target_column_expression": "sleep", "order": "ascending", "optional_column_filters": None},
    "SemanticMatch": {"query_content": "a walk", "retrieval_scope": "event"},
    "EventLocate": {"query_content": "a walk"},
}


@pytest.mark.parametrize("tool", TOOLS)
def test_schemas_hold_a_model_to_the_types(tool: str) -> None:
    schema = json_schema(tool)
    jsonschema.Draft202012Validator.check_schema(schema)
    complete = {name: CALLS[tool].get(name) for name in schema["properties"]}
    text = json.dumps(complete)
    assert json_problem(text, schema) is None and find_json(f"```json\n{text}\n```", schema) == (text, None)
    assert parse_arguments(tool, text) == parse_arguments(tool, CALLS[tool])
    assert json_problem(json.dumps(complete | {"sql": "SELECT 1"}), schema) is not None
    for name in schema["properties"]:
        assert json_problem(json.dumps({key: value for key, value in complete.items() if key != name}), schema) is not None


@pytest.mark.parametrize("tool", TOOLS)
def test_schemas_have_what_servers_that_enforce_them_ask_for(tool: str) -> None:
    def check(schema: Any) -> None:
        if isinstance(schema, list):
            for item in schema:
                check(item)
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                assert schema["additionalProperties"] is False and schema["required"] == list(schema["properties"])
            assert not {"default", "oneOf", "allOf", "maxLength"} & schema.keys()
            for value in schema.values():
                check(value)

    check(json_schema(tool))


@pytest.mark.parametrize("tool", ANALYTIC_TOOLS)
def test_objects_and_their_json_are_the_same_call(tools: ToolBox, tool: str) -> None:
    called = tools.call(tool, CALLS[tool], allowance=3)
    assert called == tools.call(tool, json.dumps(CALLS[tool]), allowance=3)
    assert called.tool == tool and isinstance(called.arguments, TOOLS[tool]) and called.units


def test_names_are_found_without_case_and_suggested(tools: ToolBox) -> None:
    tools.call("Lookup", {"table": " TRAINING_LOG", "key_values": {"TIME": "2026-03-10"}}, allowance=1)
    with pytest.raises(ToolError) as caught:
        tools.call("Lookup", {"table": "trainings_log", "key_values": {"time": "2026-03-10"}}, allowance=1)
    assert (caught.value.code, caught.value.where) == ("table", "table")
    assert caught.value.problem == "there is no table 'trainings_log', perhaps training_log"
    assert caught.value.allowed == "training_log, Empty"
    with pytest.raises(ToolError) as caught:
        tools.call("Lokup", {}, allowance=1)
    assert caught.value.code == "unknown_tool" and caught.value.problem == "there is no tool 'Lokup', perhaps Lookup"
    assert caught.value.allowed == "Lookup, Filter, Compute, Rank, SemanticMatch, EventLocate"


@pytest.mark.parametrize("allowance", [0, -1])
def test_no_units_left(tools: ToolBox, allowance: int) -> None:
    with pytest.raises(ToolError) as caught:
        tools.call("Filter", CALLS["Filter"], allowance=allowance)
    assert caught.value.code == "budget"


@pytest.mark.parametrize(
    ("arguments", "where", "problem"),
    [
        ("{", "arguments", "are not JSON"),
        ("[1]", "arguments", "are no object"),
        ("null", "arguments", "are no object"),
        (7, "arguments", "are no object"),
        ('{"table": "t", "table": "t", "key_values": {"a": 1}}', "arguments", "a key is there twice"),
        ('{"table": "t", "key_values": {"a": NaN}}', "arguments", "NaN is no JSON number"),
        ('{"table": "t", "key_values": {"a": -Infinity}}', "arguments", "-Infinity is no JSON number"),
        ('{"table": "t", "key_values": {"a": 1e999}}', "key_values[0].value", "finite number"),
        (f'{{"table": "t", "key_values": {{"a": {"9" * 400}}}}}', "key_values[0].value", "valid number"),
        (f'{{"table": "t", "key_values": {{"a": {"9" * 5000}}}}}', "arguments", "are not JSON"),
        ("[" * 20_000, "arguments", "are not JSON"),
        (" " * 60_000, "arguments", "are of more than 50000 characters"),
        ({}, "table", "Field required; key_values: Field required"),
        ({"table": 7, "key_values": {"a": 1}, "where": "1=1"}, "table", "valid string; where: Extra inputs are not permitted"),
        ({"table": "t", "key_values": {}}, "key_values", "at least 1 item"),
        ({"table": "t", "key_values": [{"column": "a", "value": 1, "or": 2}]}, "key_values[0].or", "not permitted"),
        ({"table": "t", "key_values": {"a": 1}, "x" * 300: 1}, "x" * 100, "not permitted"),
        ({"table": "t", "key_values": [{"column": "a", "value": 1, "x" * 300: 2}]}, f"key_values[0].{'x' * 100}", "not permitted"),
        ({"table": "t", "key_values": {"a": None}}, "key_values[0].value", "valid boolean or"),
        ({"table": "t", "key_values": {"a": {"b": 1}}}, "key_values[0].value", "valid boolean or"),
        ({"table": "t", "key_values": {"a": "x" * 2000}}, "key_values[0].value", "at most 1000 characters"),
        ({"table": "t", "key_values": {"a": 1}, "result_budget": 0}, "result_budget", "greater than or equal to 1"),
        ({"table": "t", "key_values": {"a": 1}, "result_budget": 2.0}, "result_budget", "valid integer"),
        ({"table": "t", "key_values": {"a": 1}, "result_budget": True}, "result_budget", "valid integer"),
        ({"table": "\ud800", "key_values": {"a": "\udfff", "\udabc": 1}}, "table", "unicode"),
        ({"table": "t", "key_values": {"a": 1}, "\ud800": 1}, "arguments", "unicode"),
    ],
)
def test_arguments_are_hostile_until_checked(tools: ToolBox, arguments: Any, where: str, problem: str) -> None:
    with pytest.raises(ToolError) as caught:
        tools.call("Lookup", arguments, allowance=1)
    assert (caught.value.code, caught.value.where) == ("arguments", where)
    assert problem in caught.value.problem and caught.value.allowed
    str(caught.value).encode()  # may be put into a request


def test_all_problems_are_named_at_once(tools: ToolBox) -> None:
    arguments = {"table": "training_log", "target_column_expression": "pulse", "operator": "sum", "group_by": "weak"}
    with pytest.raises(ToolError) as caught:
        tools.call("Compute", arguments | {"optional_column_filters": [FILTER | {"column": "lenght"}]}, allowance=1)
    assert caught.value.where == "target_column_expression"
    assert "'pulse'" in caught.value.problem and "group_by: there is no column 'weak'" in caught.value.problem
    assert "optional_column_filters[0].column: there is no column 'lenght'" in caught.value.problem


def test_retrieval_tools_are_passed_on(log: AdaMMMemory, tools: ToolBox) -> None:
    class Echo:
        def run(self, arguments: SemanticMatch | EventLocate, *, allowance: int, query_image: Any = None) -> ToolResult:
            return ToolResult(type(arguments).__name__, arguments, {"allowance": allowance, "image": query_image}, ())

    both = ToolBox(log, tables=open_tools(log)._analytic._store, retrieval=Echo())
    image: Any = object()
    for tool in ("SemanticMatch", "EventLocate"):
        result = both.call(tool, CALLS[tool], allowance=4, query_image=image)
        assert result.tool == tool and result.returned == {"allowance": 4, "image": image}
        with pytest.raises(ToolError, match="is not available here; allowed: Lookup, Filter, Compute, Rank"):
            tools.call(tool, CALLS[tool], allowance=4)
