"""Tests of the measured gain of expansion."""

from dataclasses import replace

import numpy as np
import pytest

from data.history import Question
from memory.hive.recall import expansion_gain, gold_episodes
from memory.settings import RetrievalSettings
from tests.memory.test_retrieval import QUERY, bank_of

SETTINGS = RetrievalSettings(k_ret=1, k_exp=1, expansion=True)
# The seed is 0; expansion adds 2, similarity adds 1. Episode i holds round r{i}.
BANK = bank_of([0.9, 0.8, 0.1, 0.0], [("a", ""), ("", ""), ("a", ""), ("", "")], {"a": (1.0, 0.5)}, [(0, 2)])


def _question(history: str, *clues: str) -> Question:
    return Question("q", history, "?", "!", "FR", clues)


def test_pooled_recall_and_difference() -> None:
    # h: expanded finds {0, 2}, semantic {0, 1}. Clues (r2): 1 and 0; (r0, r2): 1 and 1/2; (r1, r3): 0 and 1/2.
    # g: clue r0: 1 and 1. Pooled over 4 questions: 3/4 and 2/4. The question without clues does not count.
    questions = [_question("h", "r2"), _question("h", "r0", "r2"), _question("h", "r1", "r3"), _question("h"), _question("g", "r0")]
    banks = {"h": BANK, "g": replace(BANK, history_id="g")}
    gain = expansion_gain(questions, np.stack([QUERY] * 5), banks, SETTINGS, np.random.default_rng(0))
    assert (gain.n_questions, gain.n_histories) == (4, 2)
    assert (gain.expanded, gain.semantic, gain.difference) == pytest.approx((0.75, 0.5, 0.25))
    # Resamples of {h: +1 over 3, g: 0 over 1}: hh gives 1/3 (a quarter of them), gg gives 0, mixed 1/4.
    assert (gain.low, gain.high) == pytest.approx((0.0, 1 / 3))


def test_two_clues_in_one_episode_are_one_gold_episode() -> None:
    first = replace(BANK.episodes[0], round_ids=("r0", "r9"))
    bank = replace(BANK, episodes=(first, *BANK.episodes[1:]))
    assert gold_episodes(bank, _question("h", "r0", "r9", "r2")) == {0, 2}


def test_no_clues_is_an_error() -> None:
    with pytest.raises(ValueError, match="no question has clues"):
        expansion_gain([_question("h")], np.stack([QUERY]), {"h": BANK}, SETTINGS, np.random.default_rng(0))
