import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.adamm.names import fold, fold_spaces, snake_case, unique


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Sleep Time", "sleep_time"),
        ("  sleep__time ", "sleep_time"),
        ("Ｓｌｅｅｐ　ｔｉｍｅ", "sleep_time"),
        ("win % (2nd half)", "win_2nd_half"),
        ("Straße", "strasse"),
        ("हिंदी नाम", "हिंदी_नाम"),
        ("%", ""),
        ("", ""),
    ],
)
def test_snake_case(text: str, name: str) -> None:
    assert snake_case(text) == name


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert snake_case(snake_case(text)) == snake_case(text)
    assert fold_spaces(fold_spaces(text)) == fold_spaces(text)


def test_spaces() -> None:
    assert fold_spaces("\u00a0 5.5\n\tHRS ") == "5.5 hrs"


def test_unique() -> None:
    assert unique(["a", "A", "a_2", "a", "b"]) == ["a", "A_2", "a_2_2", "a_3", "b"]


@given(st.lists(st.sampled_from(["a", "A", "a_2", "a_2_2", "ß", "ss", "b"]), max_size=12))
def test_unique_names_differ_in_more_than_case(names: list[str]) -> None:
    made = unique(names)
    assert len({fold(name) for name in made}) == len(names)
    assert all(one.startswith(name) for one, name in zip(made, names, strict=True))
