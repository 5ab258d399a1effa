"""Numbers as they are written in answers."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.values import format_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (71.5, "71.5"),
        (71.50, "71.5"),
        (42, "42"),
        (100, "100"),  # zeros before the point stay
        (1200000, "1200000"),
        (2.665, "2.66"),  # half to even on the decimal digits, not on the binary fraction
        (2.675, "2.68"),
        (0.005, "0"),
        (0.015, "0.02"),
        (-0.004, "0"),
        (-3.10, "-3.1"),
        (Decimal("19.999"), "20"),
        (1e-9, "0"),
        (1e6, "1000000"),  # never an exponent
        (-1e30, f"-1{'0' * 30}"),
    ],
)
def test_format(value: float, text: str) -> None:
    assert format_number(value) == text


def test_unit_follows_a_space() -> None:
    assert format_number(58.0, "bpm") == "58 bpm"


@given(st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, places=4))
def test_rounds_to_within_half_a_cent_and_stays_put(value: Decimal) -> None:
    text = format_number(value)
    assert abs(Decimal(text) - value) <= Decimal("0.005")
    assert format_number(Decimal(text)) == text
    whole, _, decimals = text.partition(".")
    assert len(decimals) <= 2 and not decimals.endswith("0")
    assert "," not in whole and text != "-0"
