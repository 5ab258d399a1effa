"""A model that runs in this process can be held to every tool's arguments."""

import pytest

from memory.adamm.tools.arguments import TOOLS, json_schema
from models.qwen3_vl.grammar import ByteAutomaton
from tests.vlm import needs_vlm

pytestmark = needs_vlm


@pytest.mark.parametrize("tool", TOOLS)
def test_schemas_make_small_automata(tool: str) -> None:
    automaton = ByteAutomaton(json_schema(tool))
    assert 30 < automaton.distance[automaton.start] < 200 and len(automaton) < 2000
