"""Plans run step by step over real tables: budgets, repairs, skips, what later steps see, and the cases of AdaMM's paper."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from memory.adamm.model import AdaMMMemory
from memory.adamm.tools.toolbox import ToolBox
from models.embedded.instantiate import instantiate
from models.embedded.plan import plan
from models.embedded.steps import answer_from_tables
from models.requests import Reply, Request, Usage
from models.tasks.answer import AnswerInputs, ShownText
from models.tasks.planning import AbstractStep, Context, EarlierStep, InstantiateInputs
from planners.context import tool_cards
from planners.evidence import shown_steps
from planners.execution import BUDGET, Execution, Subject, plan_and_run, run_together
from tests.memory.adamm.tools.logs import open_tools, write_tables

DATES = ["2026-03-01", "2026-03-02", "2026-03-02", "2026-03-02", "2026-04-09", "2026-04-10"]
GLUCOSE = {"time_range": ("number", "%"), "meal_variability": ("number", "%")}
ROWS = ((82.0, 19.0), (92.0, 16.0), (91.0, 12.0), (80.0, 27.0), (95.0, 5.0), (60.0, 30.0))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> AdaMMMemory:
    tables = {"daily_glucose_dashboard": (GLUCOSE, ROWS)}
    return write_tables(tmp_path_factory.mktemp("glucose"), tables, round_orders=range(len(ROWS)), dates=DATES)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def tools(memory: AdaMMMemory) -> ToolBox:
    return open_tools(memory)


def subject(memory: AdaMMMemory, tools: ToolBox, question: str = "?", *, progressive: bool = True) -> Subject:
    cards = tool_cards(analytic=True, retrieval=False, whole_episodes=False)
    return Subject(question, (), Context(tuple(table.context for table in memory.tables), (), cards), tools, progressive)


def scripted(*texts: str) -> tuple[Callable[[Sequence[Request]], list[Reply]], list[Request]]:
    """A model that says these texts one after the other, and what it was asked."""
    told: Iterator[str] = iter(texts)
    asked: list[Request] = []

    def generate(requests: Sequence[Request]) -> list[Reply]:
        asked.extend(requests)
        return [Reply("", next(told), Usage(10, 1, 0), 0.0) for _ in requests]

    return generate, asked


def steps(*tools: str) -> str:
    return json.dumps({"steps": [{"goal": f"goal {number}", "tool": tool} for number, tool in enumerate(tools, start=1)]})


def rank(**changes: Any) -> str:
    table = {"table": "daily_glucose_dashboard", "target_column_expression": "time_range", "order": "descending"}
    return json.dumps(table | changes)


def run(texts: Sequence[str], memory: AdaMMMemory, tools: ToolBox, **options: Any) -> tuple[Execution, list[Request]]:
    generate, asked = scripted(*texts)
    (execution,) = run_together([plan_and_run(subject(memory, tools, **options))], generate)
    return execution, asked


def test_units_are_shared_over_the_steps_that_are_left(memory: AdaMMMemory, tools: ToolBox) -> None:
    execution, asked = run([steps("Rank", "Rank", "Rank"), rank(), rank(), rank()], memory, tools)
    assert [step.n_units for step in execution.steps] == [4, 3, 3]  # of ten: ⌈10/3⌉, ⌈6/2⌉, the rest
    assert execution.units_left == 0
    assert [request.inputs.budget for request in asked[1:]] == [4, 3, 3]
    assert execution.tokens == 4 * 11


def test_a_step_takes_less_if_it_asks_for_less_and_leaves_the_rest(memory: AdaMMMemory, tools: ToolBox) -> None:
    execution, _ = run([steps("Rank", "Rank"), rank(result_budget=1), rank()], memory, tools)
    assert [step.n_units for step in execution.steps] == [1, 6]  # six rows are all there are
    assert sum(step.n_units for step in execution.steps) <= BUDGET


def test_a_plan_of_more_than_three_steps_is_cut(memory: AdaMMMemory, tools: ToolBox) -> None:
    execution, _ = run([steps("Rank", "Rank", "Rank", "Rank"), rank(), rank(), rank()], memory, tools)
    assert len(execution.steps) == 3


def test_a_bad_call_is_repaired_once_with_its_error_quoted(memory: AdaMMMemory, tools: ToolBox) -> None:
    execution, asked = run([steps("Rank"), rank(table="daily_glucose"), rank(result_budget=1)], memory, tools)
    (step,) = execution.steps
    assert step.result is not None and len(step.failures) == 1
    repair = asked[2].inputs
    assert isinstance(repair, InstantiateInputs)
    assert "daily_glucose_dashboard" in repair.problem and "daily_glucose" in repair.failed
    told = "\n".join(part.text for part in asked[2].messages[1].parts)  # type: ignore[union-attr]
    assert repair.problem in told and repair.failed in told


@pytest.mark.parametrize("bad", ["no JSON", "[1]", '{"table": 3}', rank(target_column_expression="read_text('/etc/passwd')")])
def test_a_call_that_fails_twice_is_skipped_and_recorded_and_the_plan_goes_on(bad: str, memory: AdaMMMemory, tools: ToolBox) -> None:
    execution, _ = run([steps("Rank", "Rank"), bad, bad, rank()], memory, tools)
    first, second = execution.steps
    assert first.result is None and len(first.failures) == 2 and first.outcome.startswith("This step failed")
    assert second.n_units == 6
    shown = shown_steps(execution, pictures={})
    assert [item.form for item in shown[0].items] == ["note"]


@pytest.mark.parametrize("bad", ["no JSON", "{}", '{"steps": []}', steps("DropTable"), '{"steps": [{"tool": "Rank"}]}'])
def test_a_plan_that_cannot_be_read_leaves_no_steps_and_says_so(bad: str, memory: AdaMMMemory, tools: ToolBox) -> None:
    execution, asked = run([bad], memory, tools)
    assert (execution.steps, len(asked)) == ([], 1)
    assert "plan reply" in execution.plan_failure


@pytest.mark.parametrize("progressive", [True, False])
def test_later_steps_see_earlier_results_unless_withheld(progressive: bool, memory: AdaMMMemory, tools: ToolBox) -> None:
    _, asked = run([steps("Rank", "Rank"), rank(result_budget=1), rank()], memory, tools, progressive=progressive)
    earlier = asked[2].inputs.earlier
    assert bool(earlier) == progressive
    if progressive:
        assert "2026-04-09" in earlier[0].outcome  # where time_range is highest


def test_questions_that_wait_at_one_time_go_out_together(memory: AdaMMMemory, tools: ToolBox) -> None:
    sizes: list[int] = []

    def generate(requests: Sequence[Request]) -> list[Reply]:
        sizes.append(len(requests))
        texts = [steps("Rank", "Rank") if request.task == "plan" else rank() for request in requests]
        return [Reply("", text, Usage(1, 1, 0), 0.0) for text in texts]

    run_together([plan_and_run(subject(memory, tools)) for _ in range(5)], generate)
    assert sizes == [5, 5, 5]


def embedded(requests: Sequence[Request]) -> list[Reply]:
    """The embedded engine's planner."""
    texts = [plan(request.inputs) if request.task == "plan" else instantiate(request.inputs) for request in requests]
    return [Reply("", text, Usage(1, 1, 0), 0.0) for text in texts]


@pytest.mark.parametrize(
    ("day", "answer"),
    [("2026-03-02", "None"), ("2026-04-09", "2026-04-09")],  # on the first day the extrema lie in different rows
)
def test_two_extremes_under_one_date_hold_in_one_row_or_in_none(day: str, answer: str, memory: AdaMMMemory, tools: ToolBox) -> None:
    question = f"Which screen of {day} showed both the highest time range and the lowest meal variability?"
    (execution,) = run_together([plan_and_run(subject(memory, tools, question))], embedded)
    assert [step.step.tool for step in execution.steps] == ["Rank", "Rank"]
    calls = [json.loads(step.arguments) for step in execution.steps]
    assert [call["target_column_expression"] for call in calls] == ["time_range", "meal_variability"]
    assert [call["order"] for call in calls] == ["descending", "ascending"]
    assert all(call["optional_column_filters"] == [{"column": "time", "operator": "=", "value": day}] for call in calls)
    assert answer_from_tables(AnswerInputs(question, (), (), "", shown_steps(execution, pictures={}))) == answer


@pytest.mark.parametrize(
    ("earlier", "found"), [((EarlierStep("EventLocate", "{}", "[Event] date: 2026-04-10; rounds: S2:R1\nuser: ..."),), 1), ((), 0)]
)
def test_a_later_call_uses_a_day_that_only_an_earlier_one_returns(
    earlier: tuple[EarlierStep, ...], found: int, memory: AdaMMMemory, tools: ToolBox
) -> None:
    question = "What was the time range on the day of the dentist visit?"
    context = subject(memory, tools).context
    both = (AbstractStep("When was the dentist visit?", "EventLocate"), AbstractStep(question, "Compute"))
    arguments = json.loads(instantiate(InstantiateInputs(question, (), context, both, 1, earlier, 5)))
    assert len(arguments["optional_column_filters"]) == found
    result = tools.call("Compute", arguments, allowance=5)
    assert result.returned["computed_result"]["shown"] == "60 %"
    assert result.returned["computed_result"]["n_contributing"] == (1 if found else 6)


def test_an_executed_plan_is_shown_with_its_calls(memory: AdaMMMemory, tools: ToolBox) -> None:
    execution, _ = run([steps("Rank"), rank(result_budget=2)], memory, tools)
    (shown,) = shown_steps(execution, pictures={})
    assert shown.tool == "Rank" and json.loads(shown.arguments)["result_budget"] == 2
    assert len(shown.items) == 2 and all(isinstance(item, ShownText) for item in shown.items)
    assert "95" in shown.items[0].text and "2026-04-09" in shown.items[0].text
