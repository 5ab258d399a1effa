"""Names, descriptions and column types of induced tables."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.embedded.table import table
from models.tasks.adamm import TableInputs, TableReply, parse_table


def _table(columns: dict[str, tuple[str, ...]]) -> TableReply:
    return parse_table(table(TableInputs(tuple(columns.items()))), tuple(columns))


def test_types_and_units_are_those_of_the_values() -> None:
    reply = _table(
        {
            "bedtime": ("22:30", "23:05"),
            "deep_sleep": ("78 min", "1 h 20 min"),
            "mood": ("calm", "tense"),
            "paid_on": ("2031-05-06", "2031-05-08"),
            "pulse": ("61 bpm", "58 bpm"),
            "rested": ("yes", "no"),
        }
    )
    assert reply.types == ("time", "duration", "text", "date", "number", "boolean")
    assert reply.descriptions[1] == "deep sleep, a duration in min."
    assert reply.descriptions[4] == "pulse, a number in bpm."
    assert reply.descriptions[2] == "mood, in words."


def test_the_description_is_one_sentence_that_names_the_columns() -> None:
    reply = _table({"deep_sleep": ("78 min",), "rem_sleep": ("90 min",)})
    assert "deep sleep, rem sleep" in reply.description
    assert re.fullmatch(r"[^.]+\.", reply.description)
    wide = _table({f"gauge_{letter}": ("1 m",) for letter in "abcdefghijklmnop"})
    assert "gauge j and 6 more" in wide.description


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (("breathing_rate", "deep_sleep", "rem_sleep", "sleep_score"), "sleep_records"),
        (
            ("air_temperature", "brood_temperature", "hive_humidity", "hive_weight", "top_temperature"),
            "hive_records",
        ),  # heat is of anything
        (("garden_pool", "pool", "swim_pulse", "swim_time"), "swim_records"),  # of two words as often, the one that opens names
        (("cadence", "distance", "pulse"), "cadence_and_distance_records"),
    ],
)
def test_a_table_is_named_by_the_word_its_columns_share(attributes: tuple[str, ...], name: str) -> None:
    assert _table({attribute: ("1 m",) for attribute in attributes}).name == name


@given(st.dictionaries(st.text(min_size=1, max_size=12), st.lists(st.text(max_size=12), max_size=5).map(tuple), min_size=1, max_size=6))
def test_any_columns_give_a_complete_reply(columns: dict[str, tuple[str, ...]]) -> None:
    reply = _table(columns)
    assert len(reply.types) == len(reply.descriptions) == len(columns)
    assert reply == _table(columns)
