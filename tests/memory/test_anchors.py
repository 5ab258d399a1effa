"""Tests of canonical anchors."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.hive.anchors import canonical_anchors, fold_plural


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("The Old Stone Bridges", {"stone bridge": "Stone Bridges", "bridge": "Bridges"}),
        ("a kayak", {"kayak": "kayak"}),
        ("“Harbor Café!”", {"harbor café": "Harbor Café", "café": "Café"}),
        ("Ｋａｙａｋ", {"kayak": "Kayak"}),  # NFKC: full-width letters
        ("Cafe\u0301s", {"café": "Cafés"}),  # a combining accent is composed
        ("cup of coffee", {"cup": "cup", "coffee": "coffee"}),
        ("Nora’s landlord", {"nora landlord": "Nora landlord", "landlord": "landlord"}),
        ("STRASSEN", {"strassen": "STRASSEN"}),
        ("iPhone 15", {"iphone 15": "iPhone 15"}),  # a number alone is no anchor
        ("2031", {}),
        ("the", {}),
        ("...", {}),
        ("", {}),
    ],
)
def test_examples(phrase: str, expected: dict[str, str]) -> None:
    assert canonical_anchors([phrase]) == expected


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("dogs", "dog"),
        ("berries", "berry"),
        ("boxes", "box"),
        ("glasses", "glass"),
        ("beaches", "beach"),
        ("houses", "house"),
        ("glass", "glass"),
        ("status", "status"),
        ("tennis", "tennis"),
        ("gas", "gas"),
    ],
)
def test_plurals(plural: str, singular: str) -> None:
    assert fold_plural(plural) == singular


def test_the_first_surface_form_is_kept() -> None:
    assert canonical_anchors(["Red Kites", "a red kite", "kite"]) == {"red kite": "Red Kites", "kite": "Kites"}


@given(st.lists(st.text(), max_size=4))
@example(["thes dogs"])  # folding must come before determiners are dropped
@example(["froms here"])
def test_canonical_forms_are_stable(phrases: list[str]) -> None:
    for canonical in canonical_anchors(phrases):
        assert 1 <= len(canonical.split()) <= 2
        assert next(iter(canonical_anchors([canonical]))) == canonical


@given(st.text(alphabet="aeinsxchyz THEdogs'-", max_size=20))
def test_canonical_english_is_stable(phrase: str) -> None:
    once = canonical_anchors([phrase])
    assert canonical_anchors(once).keys() == once.keys()
