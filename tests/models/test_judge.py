"""The judge tasks: both reply forms, what is refused, snapping, and the embedded engine's rules."""

import json

import pytest

from models.embedded.judge import judge, outcome
from models.errors import ReplyError
from models.tasks.judge import (
    JUDGE_SCHEMA,
    JUDGE_SEVERAL_SCHEMA,
    LEVELS,
    Judged,
    JudgeInputs,
    Judgement,
    OutcomeInputs,
    judge_request,
    outcome_request,
    parse_judge,
    parse_outcome,
)

BOAT = Judged("What colour is the boat?", "The boat is red.", "Red boat.")
LAMP = Judged("Who bought the lamp?", "Mira bought it in May.", "")


@pytest.mark.parametrize(("raw", "snapped"), [(0.0, 0.0), (0.2, 0.0), (0.25, 0.5), (0.5, 0.5), (0.7, 0.5), (0.75, 1.0), (1.0, 1.0)])
def test_levels_are_snapped_as_the_published_scorers_do(raw: float, snapped: float) -> None:
    assert Judgement(raw, "").snapped == snapped


def test_one_answer_is_judged_by_an_object_and_several_by_a_list() -> None:
    one, two = judge_request(JudgeInputs((BOAT,))), judge_request(JudgeInputs((BOAT, LAMP)))
    assert (one.schema, two.schema) == (JUDGE_SCHEMA, JUDGE_SEVERAL_SCHEMA)
    assert parse_judge('{"score": 0.75, "reason": " close "}', 1) == (Judgement(0.75, "close"),)
    listed = {"judgements": [{"number": 2, "score": 0, "reason": "b"}, {"number": 1, "score": 1, "reason": "a"}]}
    assert parse_judge(json.dumps(listed), 2) == (Judgement(1.0, "a"), Judgement(0.0, "b"))
    assert parse_judge(json.dumps({"judgements": [{"number": 1, "score": 1, "reason": ""}]}), 1) == (Judgement(1.0, ""),)


def test_what_is_judged_stands_in_the_messages() -> None:
    for request in (judge_request(JudgeInputs((BOAT, LAMP))), outcome_request(OutcomeInputs(LAMP))):
        assert request.phase == "judge"
        text = "\n".join(part.text for part in request.messages[1].parts)  # type: ignore[union-attr]
        items = request.inputs.items if request.task == "judge" else (request.inputs.item,)
        for item in items:
            assert f"Question: {item.question}\nGold answer: {item.gold}\nAnswer: {item.answer or '(no answer)'}" in text


@pytest.mark.parametrize(
    "text",
    [
        "0.5",
        "{}",
        '{"score": "1", "reason": ""}',
        '{"score": true, "reason": ""}',
        '{"score": 1.5, "reason": ""}',
        '{"score": NaN, "reason": ""}',
        '{"score": 1, "reason": 3}',
    ],
)
def test_a_reply_without_a_score_is_an_error(text: str) -> None:
    with pytest.raises(ReplyError, match="judge reply"):
        parse_judge(text, 1)


def test_a_list_that_leaves_one_out_is_an_error() -> None:
    with pytest.raises(ReplyError, match="number 2"):
        parse_judge(json.dumps({"judgements": [{"number": 1, "score": 1, "reason": ""}]}), 2)


def test_outcomes_are_one_of_three() -> None:
    assert parse_outcome('{"outcome": "Omission", "reason": ""}') == "Omission"
    with pytest.raises(ReplyError, match="Hallucination"):
        parse_outcome('{"outcome": "Maybe", "reason": ""}')


def test_the_embedded_engine_judges_by_common_words() -> None:
    right, nothing, wrong = BOAT, LAMP, Judged("Where?", "In Oslo.", "Near Bergen harbour")
    levels = [found.raw for found in parse_judge(judge(JudgeInputs((right, nothing, wrong))), 3)]
    assert levels[0] >= 0.75 and levels[1:] == [0.0, 0.0] and set(levels) <= set(LEVELS)
    assert parse_judge(judge(JudgeInputs((Judged("?", "Yes.", "Yes."),))), 1)[0].raw == 1.0
    outcomes = [parse_outcome(outcome(OutcomeInputs(item))) for item in (right, nothing, wrong)]
    assert outcomes == ["Correct", "Omission", "Hallucination"]
    assert parse_outcome(outcome(OutcomeInputs(Judged("?", "Not mentioned.", "Not mentioned.")))) == "Correct"
