"""Which spellings are one unit, what converts, and that nothing converts by accident."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.units import convert, is_unit, unit_key


@pytest.mark.parametrize(
    "spellings",
    [
        "h hr hrs hour hours Hours HRS",
        "min mins minute minutes Min",
        "km KM kilometre kilometers Kilometre",
        "kg kgs kilo kilos kilogram",
        "l L litre liters",
        "% percent pct",
        "° degree degrees deg",
        "°C C celsius degC ℃",
        "kWh KWH",
        "song songs Songs",  # not known, yet one unit in singular and plural
        "glass glasses",
        "box boxes",
        "dish Dishes",
        "bpm BPM",
        "$ USD dollars usd",
        "m2 m² sqm",
        "in inch inches",
        "foot ft feet",
    ],
)
def test_one_unit(spellings: str) -> None:
    assert len({unit_key(spelling) for spelling in spellings.split()}) == 1


def test_units_of_several_words() -> None:
    assert unit_key("kilometres per hour") == unit_key("km/h") == unit_key("km per hour")
    assert unit_key("beats per minute") == unit_key("bpm")
    assert unit_key("square metres") == unit_key("m²")
    assert unit_key("degrees Celsius") == unit_key("° C")
    assert unit_key("heart points") == unit_key("Heart Point")


@pytest.mark.parametrize(
    "different",
    [
        ("m", "M", "min", "mm"),
        ("MW", "mW", "mw"),  # the last could be either
        ("g", "G"),
        ("spm", "rpm", "bpm"),
        ("C", "c", "cal", "kcal"),
        ("degrees", "°C", "°F"),
        ("pounds", "£"),
        ("ms", "m", "s"),
        ("bus", "bu"),  # a short word's "s" belongs to it
    ],
)
def test_different_units(different: tuple[str, ...]) -> None:
    assert len({unit_key(spelling) for spelling in different}) == len(different)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (5.5, "km", "m", 5500),
        (16.1, "km", "m", 16100),  # times the nearest binary fraction 16100.000000000002
        (340, "m", "km", 0.34),
        (940, "g", "kg", 0.94),
        (90, "minutes", "h", 1.5),
        (2, "days", "hours", 48),
        (2, "weeks", "days", 14),
        (250, "ms", "s", 0.25),
        (98.6, "°F", "°C", 37),  # exactly
        (37, "°C", "°F", 98.6),
        (-40, "celsius", "fahrenheit", -40),
        (0, "°C", "°F", 32),
        (36, "km/h", "m/s", 10),
        (10, "miles", "km", 16.09344),
        (6, "feet", "in", 72),
        (1, "lb", "g", 453.59237),
        (1.5, "m3", "litres", 1500),
        (1, "ha", "m2", 10000),
        (100, "kcal", "kJ", 418.4),
        (1, "kWh", "kJ", 3600),
        (1.2, "kW", "W", 1200),
        (1, "bar", "hPa", 1000),
        (18, "months", "years", 1.5),
        (3, "songs", "song", 3),
        (5, "", "", 5),
    ],
)
def test_conversions(value: float, source: str, target: str, expected: float) -> None:
    assert convert(value, source, target) == expected


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("km", "kg"),
        ("USD", "EUR"),
        ("$", "€"),
        ("points", "m"),  # a point is 0.35 mm to a printer
        ("steps", "points"),
        ("rpm", "bpm"),
        ("rpm", "1/s"),
        ("cal", "kcal"),
        ("cups", "ml"),
        ("months", "days"),
        ("degrees", "°C"),
        ("K", "°C"),
        ("%", "points"),
        ("km", ""),
        ("", "km"),
        ("M", "km"),
        ("h", "h:mm:ss"),
    ],
)
def test_nothing_else_converts(source: str, target: str) -> None:
    assert convert(5, source, target) is None
    assert convert(5, target, source) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e307])
def test_what_is_not_finite_does_not_convert(value: float) -> None:
    assert convert(value, "km", "mm") is None
    assert convert(value, "km", "km") is None


_FAMILIES = [
    ["ms", "s", "min", "h", "day", "week"],
    ["mg", "g", "kg", "lb", "oz"],
    ["mm", "m", "km", "mi", "ft"],
    ["°C", "°F"],
    ["ml", "l", "m3"],
]


@given(st.floats(-1e9, 1e9), st.sampled_from(_FAMILIES), st.data())
def test_conversions_go_there_and_back(value: float, family: list[str], data: st.DataObject) -> None:
    source, target = data.draw(st.sampled_from(family)), data.draw(st.sampled_from(family))
    there = convert(value, source, target)
    assert there is not None
    back = convert(there, target, source)
    assert back == pytest.approx(value, rel=1e-12, abs=1e-9)


def test_exact_fractions_convert() -> None:
    assert convert(Fraction(1, 3), "h", "min") == 20


@pytest.mark.parametrize("text", ["%", "°", "° C", "bpm", "km/h", "K/h", "m3", "songs", "heart points", "push-ups", "in", "fl oz", "kWh"])
def test_units_after_a_number(text: str) -> None:
    assert is_unit(text)


@pytest.mark.parametrize(
    "text",
    ["", "pm", "th", "of 10", "or more", "May", "March", "5", "(net)", "+", "-", "/h", "one two three four", "\ud800", "a cup", "km h!"],
)
def test_what_is_no_unit(text: str) -> None:
    assert not is_unit(text)
