"""Tests of rendering and counting composed evidence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data.images import load_picture
from memory.bank import EpisodeImage, MemoryBank
from memory.composition import available, compose, evidence_tokens, form_tokens, view_tokens
from memory.forms import forms_named
from memory.hive.retrieval import Candidate
from tests.memory.fakes import WordCounter, draw
from tests.memory.test_retrieval import bank_of

FORMS = forms_named(["raw", "summary", "caption", "view", "image"])
CANDIDATES = (Candidate(2, "seed", 0.9), Candidate(0, "seed", 0.8), Candidate(1, "expansion", 1.5))


@pytest.fixture
def bank(tmp_path: Path) -> MemoryBank:
    """Three episodes: 0 without images, 1 with one image without a file, 2 with two images of which one has a view."""
    plain = bank_of([0.1, 0.2, 0.3], [("", "")] * 3, {}, [])
    picture = load_picture(draw(tmp_path / "a.png", 200, 100))
    view = load_picture(draw(tmp_path / "v.png", 50, 100))
    images = {
        0: (),
        1: (EpisodeImage("i1", "red things", None, None),),
        2: (EpisodeImage("i2", "a cat", picture, view), EpisodeImage("i3", "", picture, None)),
    }
    return replace(plain, episodes=tuple(replace(episode, images=images[episode.index]) for episode in plain.episodes))


def test_available(bank: MemoryBank) -> None:
    assert available(bank, CANDIDATES, FORMS).tolist() == [
        [True, True, True, True, True],
        [True, True, False, False, False],
        [True, True, True, False, False],
    ]
    assert available(bank, (), FORMS).shape == (0, 5)


def test_memories_and_items_are_in_order(bank: MemoryBank) -> None:
    bits = np.array([[1, 0, 1, 1, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]], np.bool_)
    shown = compose(bank, CANDIDATES, bits, FORMS)
    assert [(memory.number, memory.date, [item.line for item in memory.items]) for memory in shown] == [
        (1, "2031-01-01", ["raw: raw 2", "caption i2: a cat", "view i2:", "image i2:", "image i3:"]),
        (2, "2031-01-01", ["summary: summary 1 (images: i1)"]),
    ]
    turned = dict(reversed(FORMS.items()))
    assert [item.line for item in compose(bank, CANDIDATES[:1], bits[:1, ::-1], turned)[0].items] == [
        "image i2:", "image i3:", "view i2:", "caption i2: a cat", "raw: raw 2",
    ]  # fmt: skip


def test_bits_of_absent_forms_are_ignored(bank: MemoryBank) -> None:
    everything = np.ones((3, 5), np.bool_)
    assert compose(bank, CANDIDATES, everything, FORMS) == compose(bank, CANDIDATES, available(bank, CANDIDATES, FORMS), FORMS)
    only_absent = np.zeros((3, 5), np.bool_)
    only_absent[1, 2:] = True
    assert compose(bank, CANDIDATES, only_absent, FORMS) == ()
    with pytest.raises(ValueError, match=r"must have shape \(3, 5\)"):
        compose(bank, CANDIDATES, everything[:2], FORMS)


def test_tokens(bank: MemoryBank) -> None:
    bits = np.array([[1, 0, 1, 1, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]], np.bool_)
    tokens = evidence_tokens(compose(bank, CANDIDATES, bits, FORMS), WordCounter())
    # Lines in words: "raw: raw 2" 3; "caption i2: a cat" 4; "view i2:" 2 + 5 (50 × 100 pixels); "image i2:" and
    # "image i3:" 2 + 20 each; "summary: summary 1 (images: i1)" 5; two headings "[Memory 1] 2031-01-01" of 3.
    assert tokens.by_form == {"raw": 3, "caption": 4, "view": 7, "image": 44, "summary": 5}
    assert tokens.headings == 6
    assert tokens.total == 69
    assert evidence_tokens((), WordCounter()).total == 0


def test_form_tokens_add_up_to_the_whole(bank: MemoryBank) -> None:
    costs = form_tokens(bank, CANDIDATES, FORMS, WordCounter())
    assert costs.tolist() == [[3, 6, 4, 7, 44], [3, 3, 0, 0, 0], [3, 5, 4, 0, 0]]
    rng = np.random.default_rng(0)
    for bits in rng.random((20, 3, 5)) < 0.5:
        tokens = evidence_tokens(compose(bank, CANDIDATES, bits, FORMS), WordCounter())
        assert tokens.total == (costs * bits).sum() + tokens.headings


def test_view_tokens_compare_views_with_their_own_images(bank: MemoryBank) -> None:
    tokens = view_tokens(bank, WordCounter())
    assert (tokens.views, tokens.images) == (5, 20)  # i3 has no view, so its picture does not count
