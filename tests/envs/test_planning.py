"""The planning environment on a real memory with the embedded engine: checks, masks, limits, batching, resuming."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as check_with_gymnasium
from stable_baselines3.common.env_checker import check_env as check_with_sb3

from envs.planning import MAX_STEPS, N_ACTIONS, N_TABLE_ACTIONS, STOP, PlanningRollout, ToolPlanningEnv, tool_of
from envs.planning_batched import BatchedPlanningEnv
from envs.planning_training import PlanningQuestions, random_choice
from envs.reward import RewardNormaliser
from envs.settings import Settings, default_settings
from envs.workbench import Workbench, open_workbench
from memory.adamm.tools.arguments import ANALYTIC_TOOLS
from memory.adamm.tools.errors import ToolError
from models.requests import Reply, Request, Usage
from planners.execution import BUDGET, run_together


@pytest.fixture(scope="module")
def settings(tiny_settings: Settings) -> Settings:
    return default_settings(
        data=tiny_settings.data.model_dump(),
        cache=tiny_settings.cache,
        memory="both",
        env={"name": "planning", **PLANNING},
        algo={"minibatch_size": 16},
    )


PLANNING = {"n_envs": 4, "n_steps": 4, "n_prefill": 20, "pipeline": "adamm", "composer": "all-forms"}


@pytest.fixture(scope="module")
def bench(settings: Settings) -> Workbench:
    return open_workbench(settings, needs=("hive", "adamm"))


@pytest.fixture(scope="module")
def questions(bench: Workbench) -> PlanningQuestions:
    return PlanningQuestions(bench, bench.dataset.questions[:20])


def normaliser(bench: Workbench) -> RewardNormaliser:
    found = bench.empty_normaliser()
    found.prefill([100.0, 5000.0])
    return found


def parts(bench: Workbench, questions: PlanningQuestions) -> dict[str, Any]:
    """What both forms of the environment are made of."""
    return {
        "questions": questions.planned,
        "candidates": questions.candidates,
        "answerer": questions.answerer,
        "generate": questions.generate,
        "normaliser": normaliser(bench),
        "cost_weight": 0.1,
    }


def environment(bench: Workbench, questions: PlanningQuestions) -> ToolPlanningEnv:
    return ToolPlanningEnv(**parts(bench, questions))


def batched(bench: Workbench, questions: PlanningQuestions) -> BatchedPlanningEnv:
    return BatchedPlanningEnv(**parts(bench, questions), n_envs=4, seed=3)


def test_both_checkers_pass_without_a_warning(settings: Settings) -> None:
    made = gymnasium.make("EvidenceGym/ToolPlanning-v0", settings=settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_with_gymnasium(made.unwrapped)
        check_with_sb3(made)


def test_masks_offer_what_there_is_in_every_state_of_up_to_two_steps(questions: PlanningQuestions) -> None:
    n_states = 0
    for number, planned in enumerate(questions.planned):
        offered = np.zeros(N_ACTIONS, np.bool_)
        offered[N_TABLE_ACTIONS:] = True
        offered[:N_TABLE_ACTIONS] = np.tile(np.arange(5) < len(planned.context.tables), len(ANALYTIC_TOOLS))
        nothing = PlanningRollout(planned, candidates=questions.candidates[number])
        np.testing.assert_array_equal(nothing.mask(), offered)
        for first in np.flatnonzero(offered)[:-1].tolist():
            once = after(nothing, first, questions)
            for state in (once, *(after(once, second, questions) for second in np.flatnonzero(once.mask())[:-1].tolist())):
                has_units = state.execution.units_left >= 1
                np.testing.assert_array_equal(state.mask(), offered if has_units else np.arange(N_ACTIONS) == STOP)
                n_states += 1
    assert n_states > 20 * 100


def after(rollout: PlanningRollout, action: int, questions: PlanningQuestions) -> PlanningRollout:
    """A copy of a rollout that has taken one action more."""
    copied = PlanningRollout(rollout.planned, candidates=questions.candidates[0])
    execution = rollout.execution
    copied.actions = [*rollout.actions]
    copied.execution = replace(execution, steps=[*execution.steps], replies=[*execution.replies])
    run_together([copied.act(action, questions.answerer)], hurried(questions))
    assert tool_of(action, copied.planned)[0] == copied.execution.steps[-1].step.tool
    return copied


def hurried(questions: PlanningQuestions) -> Callable[[Sequence[Request]], list[Reply]]:
    """Asks the model for arguments, each only once, and answers nothing: what is asked at the end does not matter."""

    def generate(requests: Sequence[Request]) -> list[Reply]:
        return [
            (_KNOWN.get(request.key("m")) or _KNOWN.setdefault(request.key("m"), questions.generate([request])[0]))
            if request.task == "instantiate"
            else Reply("", "nothing", Usage(0, 0, 0), 0.0)
            for request in requests
        ]

    return generate


_KNOWN: dict[str, Reply] = {}


def test_whatever_a_model_replies_rollouts_keep_to_the_limits(questions: PlanningQuestions) -> None:
    rng = np.random.default_rng(0)
    bad = ["", "no JSON", "[]", "{}", '{"table": "x"}', '{"result_budget": 99}', '{"query_content": "rain", "result_budget": 0}']

    def generate(requests: Sequence[Request]) -> list[Reply]:
        replies = hurried(questions)(requests)
        is_bad = [request.task == "instantiate" and rng.random() < 0.3 for request in requests]
        return [replace(reply, text=str(rng.choice(bad))) if odd else reply for reply, odd in zip(replies, is_bad, strict=True)]

    lengths: Counter[int] = Counter()
    for _ in range(400):
        number = int(rng.integers(len(questions.planned)))
        rollout = PlanningRollout(questions.planned[number], candidates=questions.candidates[number])
        outcome = None
        while outcome is None:
            assert len(rollout.actions) < MAX_STEPS and rollout.execution.units_left >= 1
            action = int(rng.choice(np.flatnonzero(rollout.mask())))
            (outcome,) = run_together([rollout.act(action, questions.answerer)], generate)
        steps = rollout.execution.steps
        assert len(steps) == len(rollout.actions) <= MAX_STEPS and sum(step.n_units for step in steps) <= BUDGET
        assert outcome.answer
        lengths[len(steps)] += 1
    assert set(lengths) == {0, 1, 2, 3}


def test_random_rollouts_keep_to_the_limits_and_are_always_answered(questions: PlanningQuestions) -> None:
    choose = random_choice(np.random.default_rng(0))
    seen = set()
    for _ in range(5):
        for rollout, outcome in questions.steer(choose):
            steps = rollout.execution.steps
            assert len(steps) == len(rollout.actions) <= MAX_STEPS
            assert sum(step.n_units for step in steps) <= BUDGET
            assert 0 <= outcome.f1 <= 1 and outcome.answer
            assert outcome.total_tokens > outcome.planning_tokens
            seen.add(len(steps))
    assert seen == {0, 1, 2, 3}


def test_a_rollout_without_tools_still_asks_and_is_scored(questions: PlanningQuestions) -> None:
    ((rollout, outcome),) = questions.steer(lambda rollouts: [STOP for _ in rollouts], places=[0])
    assert (rollout.actions, outcome.evidence_tokens, outcome.answer) == ([], 0, "Not mentioned.")


def test_a_tool_error_never_ends_a_rollout(questions: PlanningQuestions, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = questions.planned[0].subject.tools

    def refuse(*_: Any, **__: Any) -> None:
        raise ToolError("value", "column_filters[0]", "is odd", "another")

    monkeypatch.setattr(tools, "call", refuse)
    actions = iter([0, 20, STOP])
    ((rollout, outcome),) = questions.steer(lambda rollouts: [next(actions) for _ in rollouts], places=[0])
    assert [step.result for step in rollout.execution.steps] == [None, None]
    assert all(len(step.failures) == 2 and "is odd" in step.failures[0] for step in rollout.execution.steps)
    assert outcome.answer


def test_a_masked_action_stops(bench: Workbench, questions: PlanningQuestions) -> None:
    env = environment(bench, questions)
    env.reset(seed=0, options={"question": 0})
    masked = np.flatnonzero(~env.action_masks())
    assert len(masked)  # this history has fewer than five tables
    _, _, terminated, _, info = env.step(np.int64(masked[0]))
    assert terminated and info["plan"] == []
    with pytest.raises(ResetNeeded):
        env.step(np.int64(STOP))


def test_the_batched_form_gives_what_the_single_one_gives(bench: Workbench, questions: PlanningQuestions) -> None:
    many = batched(bench, questions)
    observations = many.reset()
    assert isinstance(observations, dict)
    rng = np.random.default_rng(1)
    played: list[tuple[str, tuple[str, ...], float]] = []
    for _ in range(12):
        masks = np.array(many.env_method("action_masks"))
        np.testing.assert_array_equal(masks, observations["action_mask"].astype(bool))
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        observations, _, dones, infos = many.step(actions)
        assert isinstance(observations, dict)
        played += [
            (info["question_id"], tuple(info["plan"]), info["answer_reward"]) for info, done in zip(infos, dones, strict=True) if done
        ]
    assert many.n_answered == len(played) > 8
    single = environment(bench, questions)
    by_id = {item.question.id: number for number, item in enumerate(questions.planned)}
    for question_id, plan, score in played[:6]:
        single.reset(options={"question": by_id[question_id]})
        steps = [*plan, *(["stop"] if len(plan) < MAX_STEPS else [])]
        for name in steps:
            (action,) = [n for n in range(N_ACTIONS) if single.action_masks()[n] and name_of(n, questions, by_id[question_id]) == name][:1]
            _, _, terminated, _, info = single.step(np.int64(action))
            if terminated:
                break
        assert info["answer_reward"] == score and tuple(info["plan"]) == plan


def name_of(action: int, questions: PlanningQuestions, number: int) -> str:
    from envs.planning import action_name

    return action_name(action, questions.planned[number])


def test_a_saved_state_continues_exactly(bench: Workbench, questions: PlanningQuestions) -> None:
    def play(env: BatchedPlanningEnv, rng: np.random.Generator, n: int) -> list[Any]:
        seen = []
        for _ in range(n):
            actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in env.action_masks()])
            observations, rewards, dones, infos = env.step(actions)
            seen.append((rewards.tolist(), dones.tolist(), [info["question_id"] for info in infos], observations["executed"].tobytes()))  # type: ignore[call-overload,index]
        return seen

    first = batched(bench, questions)
    first.reset()
    play(first, np.random.default_rng(2), 5)
    state = first.state_dict()
    wanted = play(first, np.random.default_rng(3), 6)
    second = batched(bench, questions)
    second.reset()
    second.load_state_dict(state)
    assert play(second, np.random.default_rng(3), 6) == wanted


def test_rollouts_that_wait_for_the_model_share_a_batch(questions: PlanningQuestions) -> None:
    sizes: list[int] = []

    def generate(requests: Sequence[Request]) -> list[Reply]:
        sizes.append(len(requests))
        return questions.generate(requests)

    rollouts = [PlanningRollout(item, candidates=questions.candidates[n]) for n, item in enumerate(questions.planned[:6])]
    run_together([rollout.act(22, questions.answerer) for rollout in rollouts], generate)
    assert sizes[0] == 6
