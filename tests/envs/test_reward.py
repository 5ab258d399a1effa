"""The reward of Eq. 6-9: numbers worked by hand, the windows, and exact resumption."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.reward import CostRange, FrozenReward, RewardNormaliser


def normaliser(**changes: float) -> RewardNormaliser:
    settings = {"cost_window": 1024, "sample_window": 1024, "min_samples": 64, "max_alpha": 10.0, "epsilon": 1e-6} | changes
    return RewardNormaliser(**settings)  # type: ignore[arg-type]  # counts and numbers by name


def test_hand_worked_batch() -> None:
    # sqrt of the costs: 0, 10, 20, 30, 40. Positions of the quantiles: 0.05 * 4 = 0.2 -> 2, and 0.95 * 4 = 3.8 -> 38.
    # C_hat = (s - 2) / 36 clipped: 0, 8/36, 18/36, 28/36, 1.
    # R_ans = 1, 0, 1, 0, 1: mean 0.6, population variance 0.6 * 0.4 = 0.24.
    # C_hat in 36ths: 0, 8, 18, 28, 36; mean 18; squared deviations 324 + 100 + 0 + 100 + 324 = 848; variance 848 / 5 = 169.6.
    terms = normaliser(min_samples=5).rewards([1, 0, 1, 0, 1], [0, 100, 400, 900, 1600], cost_weight=0.3)
    normalised = np.array([0, 8, 18, 28, 36]) / 36
    alpha = 0.24**0.5 / (169.6**0.5 / 36 + 1e-6)
    assert terms.normalised_cost == pytest.approx(normalised)
    assert terms.alpha == pytest.approx(alpha)
    assert terms.scaled_cost == pytest.approx(alpha * normalised)
    assert terms.reward == pytest.approx(np.array([1, 0, 1, 0, 1]) - 0.3 * alpha * normalised)
    assert list(terms.cost) == [0, 100, 400, 900, 1600]
    assert list(terms.answer_reward) == [1, 0, 1, 0, 1]
    assert all(
        array.dtype == np.float64 and array.shape == (5,) for array in (terms.cost, terms.normalised_cost, terms.scaled_cost, terms.reward)
    )


def test_the_batch_is_in_its_own_cost_window() -> None:
    # Prefilled with sqrt 0 and 10; the batch adds 40: sorted 0, 10, 40, quantiles at 0.1 -> 1 and 1.9 -> 10 + 0.9 * 30 = 37.
    # Without the batch the range would be 0.5 to 9.5 and 20 tokens would be clipped to 1.
    reward = normaliser()
    reward.prefill([0, 100])
    assert reward.rewards([1.0], [1600], cost_weight=0.1).normalised_cost == pytest.approx([1.0])
    # Window now 0, 10, 40, 20: positions 0.15 -> 1.5 and 2.85 -> 20 + 0.85 * 20 = 37; (20 - 1.5) / 35.5.
    assert reward.rewards([1.0], [400], cost_weight=0.1).normalised_cost == pytest.approx([18.5 / 35.5])


def test_alpha_starts_at_the_64th_sample_which_counts() -> None:
    reward = normaliser()
    scores, costs = [0.0, 1.0] * 31, [100.0, 400.0] * 31
    terms = reward.rewards(scores, costs, cost_weight=1.0)
    assert terms.alpha == 0.0
    assert list(terms.reward) == scores  # no cost yet
    assert reward.rewards([0.0], [100.0], cost_weight=1.0).alpha == 0.0
    # 64 samples, half of each: std(R) = 0.5; the quantiles are 10 and 20, so C_hat is 0 or 1 and has std 0.5 too.
    assert reward.rewards([1.0], [400.0], cost_weight=1.0).alpha == pytest.approx(0.5 / (0.5 + 1e-6), rel=1e-9)


def test_alpha_is_capped() -> None:
    # All costs equal: C_hat = 0 with std 0, so alpha would be 0.5 / 1e-6.
    terms = normaliser(min_samples=4).rewards([0, 1, 0, 1], [50, 50, 50, 50], cost_weight=1.0)
    assert list(terms.normalised_cost) == [0, 0, 0, 0]
    assert terms.alpha == 10.0
    assert list(terms.reward) == [0, 1, 0, 1]


def test_windows_keep_the_latest_entries() -> None:
    reward = normaliser(cost_window=3, sample_window=2, min_samples=2)
    reward.prefill([1, 4, 9, 16])
    reward.rewards([0.25], [25], cost_weight=0.0)
    reward.rewards([0.5], [36], cost_weight=0.0)
    reward.rewards([0.75], [49], cost_weight=0.0)
    state = reward.state_dict()
    assert state["costs"] == [25, 36, 49]
    assert state["answer_scores"] == [0.5, 0.75]
    # sqrt(36) was the largest of 4, 5, 6 (0.9 quantile position 1.9 -> 5.9), so it was stored as 1 and stays so.
    assert state["normalised_costs"] == [1.0, 1.0]


def test_a_batch_larger_than_the_window_is_rewarded_whole() -> None:
    terms = normaliser(cost_window=2, sample_window=2, min_samples=1).rewards([0, 0, 1], [0, 100, 400], cost_weight=0.0)
    # Only 10 and 20 are in the window: range 10.5 to 19.5.
    assert list(terms.normalised_cost) == [0.0, 0.0, 1.0]


def test_frozen_uses_the_prefilled_range_and_the_present_alpha() -> None:
    reward = normaliser(min_samples=2)
    reward.prefill([0, 100, 400, 900, 1600])  # range 2 to 38, as in the first test
    alpha = reward.rewards([0.0, 1.0], [4_000_000, 0], cost_weight=0.1).alpha
    frozen = reward.frozen()
    assert frozen == FrozenReward(CostRange(2.0, 38.0), alpha)
    first = frozen.rewards([1.0], [400], cost_weight=0.5)
    assert first.reward == pytest.approx([1 - 0.5 * alpha * 0.5])
    reward.rewards([0.3, 0.9], [77, 99], cost_weight=0.1)
    assert frozen.rewards([1.0], [400], cost_weight=0.5).reward == first.reward
    assert frozen.rewards([1.0], [10_000], cost_weight=0.5).normalised_cost == [1.0]


def test_order_of_use_is_enforced() -> None:
    reward = normaliser()
    with pytest.raises(RuntimeError, match="needs a prefilled cost window"):
        reward.frozen()
    reward.rewards([1.0], [3], cost_weight=0.1)
    with pytest.raises(RuntimeError, match="before the first batch"):
        reward.prefill([1, 2])


@pytest.mark.parametrize(
    ("scores", "costs", "weight", "message"),
    [
        ([1.0], [1, 2], 0.1, "got 1 and 2"),
        ([], [], 0.1, "got 0 and 0"),
        ([1.0], [-1], 0.1, "costs must be at least 0 tokens, got -1"),
        ([float("nan")], [1], 0.1, "answer_scores must be one-dimensional and finite"),
        ([1.0], [float("inf")], 0.1, "costs must be one-dimensional and finite"),
        ([[1.0]], [[1]], 0.1, r"got shape \(1, 1\)"),
        ([1.0], [1], -0.1, "cost_weight must be a number of at least 0, got -0.1"),
        ([1.0], [1], float("nan"), "cost_weight must be a number of at least 0, got nan"),
    ],
)
def test_unusable_batches_change_nothing(scores: list[float], costs: list[float], weight: float, message: str) -> None:
    reward = normaliser()
    reward.prefill([1, 2, 3])
    before = reward.state_dict()
    with pytest.raises(ValueError, match=message):
        reward.rewards(scores, costs, cost_weight=weight)
    assert reward.state_dict() == before


def test_all_unusable_settings_are_named() -> None:
    with pytest.raises(ValueError, match=r"cost_window=0 .*epsilon=0.*min_samples=9 \(must not exceed sample_window=8\)"):
        normaliser(cost_window=0, epsilon=0, min_samples=9, sample_window=8)


def test_prefill_needs_costs() -> None:
    with pytest.raises(ValueError, match="draw at least one composition"):
        normaliser().prefill([])


batches = st.lists(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 20_000)), min_size=1, max_size=6),
    min_size=1,
    max_size=8,
)


@given(batches, st.integers(0, 8), st.floats(0, 2))
def test_a_restored_normaliser_continues_identically(stream: list[list[tuple[float, int]]], cut: int, weight: float) -> None:
    whole = normaliser(cost_window=7, sample_window=9, min_samples=3)
    whole.prefill([5, 500, 3_000])
    resumed = whole
    for i, batch in enumerate(stream):
        if i == cut:
            state = json.loads(json.dumps(whole.state_dict()))
            resumed = normaliser(cost_window=7, sample_window=9, min_samples=3)
            resumed.load_state_dict(state)
        scores, costs = zip(*batch, strict=True)
        expected = whole.rewards(scores, costs, cost_weight=weight)
        if resumed is not whole:
            actual = resumed.rewards(scores, costs, cost_weight=weight)
            assert [np.asarray(term).tobytes() for term in actual] == [np.asarray(term).tobytes() for term in expected]
    assert resumed.frozen() == whole.frozen()


@given(batches, st.floats(0, 2))
def test_terms_are_bounded_and_fall_with_cost(stream: list[list[tuple[float, int]]], weight: float) -> None:
    reward = normaliser(cost_window=20, sample_window=20, min_samples=2)
    for batch in stream:
        scores, costs = (np.array(column, dtype=float) for column in zip(*batch, strict=True))
        terms = reward.rewards(scores, costs, cost_weight=weight)
        assert ((terms.normalised_cost >= 0) & (terms.normalised_cost <= 1)).all()
        assert 0 <= terms.alpha <= 10
        order = np.argsort(costs, kind="stable")
        assert (np.diff(terms.normalised_cost[order]) >= 0).all()
        assert (np.diff((terms.reward - scores)[order]) <= 1e-12).all()
        assert np.array_equal(terms.reward, scores - weight * (terms.alpha * terms.normalised_cost))


def test_a_foreign_state_is_refused_whole() -> None:
    saved = normaliser(cost_window=4)
    saved.prefill([1, 2, 3])
    with pytest.raises(ValueError, match=r"settings .*'cost_window': 4.* are not those of this run"):
        normaliser().load_state_dict(saved.state_dict())
    reward = normaliser(cost_window=4)
    damaged = saved.state_dict() | {"costs": [1.0, 2.0, 3.0, 4.0, 5.0]}
    with pytest.raises(ValueError, match=r"impossible sizes \(5 costs"):
        reward.load_state_dict(damaged)
    assert reward.state_dict()["costs"] == []
