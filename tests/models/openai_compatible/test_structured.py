import pytest

from models.openai_compatible.structured import ask_again, ask_in_words, find_json
from tests.models.openai_compatible.support import SCHEMA

GOOD = '{"name": "Ada", "age": 36}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! {GOOD} Anything else?",
        f"<think>maybe {{x}} or {{}}</think>{GOOD}",
        f'{{"draft": true}} {GOOD}',
        "{" * 5000 + GOOD,
    ],
)
def test_json_is_found_in_what_surrounds_it(text: str) -> None:
    assert find_json(text, SCHEMA) == (GOOD, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Ada, 36", "is not JSON"),
        ('{"name": "Ada"}', "'age' is a required property"),
        ('{"name": "Ada", "age": "36"}', "is not of type 'integer'"),
        ('{"name": "Ada", "age": NaN}', "is not JSON"),
        (GOOD[:-5], "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    found, why = find_json(text, SCHEMA)
    assert found == text and why is not None and problem in why


def test_a_server_without_schemas_is_told_in_the_system_message() -> None:
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}
    asked = ask_in_words([system, user], SCHEMA)
    assert asked[1] == user and asked[0]["content"].startswith("Be brief.\n\n") and '"required": ["name", "age"]' in asked[0]["content"]
    assert [message["role"] for message in ask_in_words([user], SCHEMA)] == ["system", "user"]
    assert system["content"] == "Be brief."  # the original is not changed


def test_a_repair_quotes_the_reply_and_its_problem() -> None:
    asked = ask_again([{"role": "user", "content": "Who?"}], "Ada", "is not JSON", SCHEMA)
    assert [message["role"] for message in asked] == ["user", "assistant", "user"]
    assert asked[1]["content"] == "Ada" and "is not JSON" in asked[2]["content"] and '"age"' in asked[2]["content"]
