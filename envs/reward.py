"""The reward of HiVe-Mem's Appendix A.2: answer score minus the weighted, normalised and scaled token cost (Eq. 6-9).

    C_hat   = clip((sqrt(C) - Q5) / (Q95 - Q5), 0, 1)          (Eq. 7)
    alpha   = Std(R_ans) / (Std(C_hat) + epsilon)              (Eq. 8)
    R       = R_ans - lambda * alpha * C_hat                   (Eq. 6 and 9)

The paper leaves the windows open. Here Q5 and Q95 are quantiles (linear interpolation) of sqrt(C) over the latest costs,
and alpha is taken over the latest (R_ans, C_hat) samples with population standard deviations; the current batch is in
both windows, and C_hat stays in its window as it was computed. Equal quantiles give C_hat = 0. Alpha is 0 until enough
samples are there and is capped, because Std(C_hat) can vanish. Costs come in tokens; lambda is ``cost_weight``.
"""

from dataclasses import asdict, dataclass
from typing import NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

LOW_QUANTILE, HIGH_QUANTILE = 0.05, 0.95


class RewardTerms(NamedTuple):
    """The reward of a batch and every term of it; arrays are (B,) float64."""

    answer_reward: FloatArray
    """R_ans, the answer's score."""
    cost: FloatArray
    """C, evidence tokens."""
    normalised_cost: FloatArray
    """C_hat of Eq. 7, in [0, 1]."""
    alpha: float
    """The scale of Eq. 8 that the whole batch was given."""
    scaled_cost: FloatArray
    """alpha * C_hat of Eq. 8, in the answer score's units."""
    reward: FloatArray
    """R of Eq. 9."""


class NormaliserState(TypedDict):
    """What `RewardNormaliser.state_dict` holds: plain JSON, exact."""

    settings: dict[str, float]
    costs: list[float]
    answer_scores: list[float]
    normalised_costs: list[float]
    prefilled_range: list[float] | None


@dataclass(frozen=True)
class CostRange:
    """Q5 and Q95 of sqrt(C), in square roots of tokens."""

    low: float
    high: float

    @classmethod
    def of(cls, costs: FloatArray) -> "CostRange":
        """Take both quantiles of the square roots of (N,) costs in tokens, N > 0."""
        low, high = np.quantile(np.sqrt(costs), [LOW_QUANTILE, HIGH_QUANTILE], method="linear")
        return cls(float(low), float(high))

    def normalise(self, costs: FloatArray) -> FloatArray:
        """Map (N,) costs in tokens to C_hat in [0, 1] (Eq. 7); all 0 where the quantiles are equal."""
        if self.high <= self.low:
            return np.zeros_like(costs)
        return np.clip((np.sqrt(costs) - self.low) / (self.high - self.low), 0.0, 1.0)


@dataclass(frozen=True)
class FrozenReward:
    """The validation reward: the same equations with a fixed cost range and alpha, so that checkpoints can be compared."""

    range: CostRange
    alpha: float

    def rewards(self, answer_scores: npt.ArrayLike, costs: npt.ArrayLike, *, cost_weight: float) -> RewardTerms:
        """Return the terms for (B,) answer scores and (B,) costs in tokens.

        Raises:
            ValueError: shapes, values or the weight are unusable; the message says which.
        """
        scores_, costs_ = _checked_batch(answer_scores, costs, cost_weight)
        return _terms(scores_, costs_, self.range.normalise(costs_), self.alpha, cost_weight)


@dataclass(frozen=True)
class NormaliserSettings:
    """The sizes and bounds that the paper leaves open.

    ``cost_window`` and ``sample_window`` count entries, ``min_samples`` how many samples alpha needs, ``max_alpha``
    caps it and ``epsilon`` is Eq. 8's.
    """

    cost_window: int
    sample_window: int
    min_samples: int
    max_alpha: float
    epsilon: float

    def __post_init__(self) -> None:
        wrong = [f"{name}={value} (must be positive)" for name, value in asdict(self).items() if not value > 0]
        if self.min_samples > self.sample_window:
            wrong.append(f"min_samples={self.min_samples} (must not exceed sample_window={self.sample_window})")
        if wrong:
            raise ValueError(f"unusable reward settings: {'; '.join(wrong)}")


class RewardNormaliser:
    """The training reward: keeps both windows and rewards one batch after another.

    Args:
        cost_window: How many latest costs Q5 and Q95 are taken over.
        sample_window: How many latest (R_ans, C_hat) samples alpha is taken over.
        min_samples: Alpha is 0 while fewer samples are there.
        max_alpha: Upper bound of alpha.
        epsilon: Eq. 8's constant.
    """

    def __init__(self, *, cost_window: int, sample_window: int, min_samples: int, max_alpha: float, epsilon: float) -> None:
        self.settings = NormaliserSettings(cost_window, sample_window, min_samples, max_alpha, epsilon)
        self._costs: FloatArray = np.empty(0)
        self._answer_scores: FloatArray = np.empty(0)
        self._normalised_costs: FloatArray = np.empty(0)
        self._prefilled_range: CostRange | None = None

    @property
    def alpha(self) -> float:
        """The scale of Eq. 8 over the current samples, 0 while there are too few, never above ``max_alpha``."""
        if len(self._answer_scores) < self.settings.min_samples:
            return 0.0
        scale = float(np.std(self._answer_scores) / (np.std(self._normalised_costs) + self.settings.epsilon))
        return min(scale, self.settings.max_alpha)

    def prefill(self, costs: npt.ArrayLike) -> None:
        """Fill the cost window with (N,) costs in tokens of random compositions, before training; they need no answers.

        Raises:
            ValueError: no costs, or unusable ones.
            RuntimeError: a batch was already rewarded.
        """
        if len(self._answer_scores):
            raise RuntimeError("prefill the cost window before the first batch is rewarded")
        new = _checked_costs(costs)
        if not new.size:
            raise ValueError("the cost window cannot be filled with no costs; draw at least one composition")
        self._costs = _latest(self._costs, new, self.settings.cost_window)
        self._prefilled_range = CostRange.of(self._costs)

    def rewards(self, answer_scores: npt.ArrayLike, costs: npt.ArrayLike, *, cost_weight: float) -> RewardTerms:
        """Take a batch into both windows, then reward it.

        Args:
            answer_scores: (B,) R_ans of each answer.
            costs: (B,) evidence tokens of each request.
            cost_weight: Lambda of Eq. 6, at least 0.

        Returns:
            The reward and its terms.

        Raises:
            ValueError: shapes, values or the weight are unusable; the windows are then unchanged.
        """
        scores_, costs_ = _checked_batch(answer_scores, costs, cost_weight)
        self._costs = _latest(self._costs, costs_, self.settings.cost_window)
        normalised = CostRange.of(self._costs).normalise(costs_)
        self._answer_scores = _latest(self._answer_scores, scores_, self.settings.sample_window)
        self._normalised_costs = _latest(self._normalised_costs, normalised, self.settings.sample_window)
        return _terms(scores_, costs_, normalised, self.alpha, cost_weight)

    def frozen(self) -> FrozenReward:
        """Return the validation reward: the cost range of the prefilled window, and alpha as it is now.

        Raises:
            RuntimeError: the cost window was never prefilled.
        """
        if self._prefilled_range is None:
            raise RuntimeError("the validation reward needs a prefilled cost window; call prefill before training")
        return FrozenReward(self._prefilled_range, self.alpha)

    def state_dict(self) -> NormaliserState:
        """Return both windows as JSON-able values that restore bit for bit (Python writes floats round-trip exact)."""
        prefilled = self._prefilled_range
        return NormaliserState(
            settings=asdict(self.settings),
            costs=self._costs.tolist(),
            answer_scores=self._answer_scores.tolist(),
            normalised_costs=self._normalised_costs.tolist(),
            prefilled_range=None if prefilled is None else [prefilled.low, prefilled.high],
        )

    def load_state_dict(self, state: NormaliserState) -> None:
        """Continue from a saved state.

        Raises:
            ValueError: the state was saved under other settings or its windows are unusable; nothing is loaded then.
        """
        if state["settings"] != asdict(self.settings):
            raise ValueError(
                f"saved reward settings {state['settings']} are not those of this run, {asdict(self.settings)}; resume with the same"
            )
        costs = _checked_costs(state["costs"])
        scores, normalised = (_vector(name, state[name]) for name in ("answer_scores", "normalised_costs"))
        if scores.shape != normalised.shape or len(costs) > self.settings.cost_window or len(scores) > self.settings.sample_window:
            sizes = f"{len(costs)} costs, {len(scores)} answer scores, {len(normalised)} normalised costs"
            raise ValueError(f"the saved reward windows have impossible sizes ({sizes}); restore an undamaged checkpoint")
        self._costs, self._answer_scores, self._normalised_costs = costs, scores, normalised
        self._prefilled_range = None if state["prefilled_range"] is None else CostRange(*state["prefilled_range"])


def _terms(scores: FloatArray, costs: FloatArray, normalised: FloatArray, alpha: float, cost_weight: float) -> RewardTerms:
    scaled = alpha * normalised
    return RewardTerms(scores, costs, normalised, alpha, scaled, scores - cost_weight * scaled)


def _latest(window: FloatArray, new: FloatArray, size: int) -> FloatArray:
    return np.concatenate([window, new])[-size:]


def _checked_batch(answer_scores: npt.ArrayLike, costs: npt.ArrayLike, cost_weight: float) -> tuple[FloatArray, FloatArray]:
    scores_, costs_ = _vector("answer_scores", answer_scores), _checked_costs(costs)
    if scores_.shape != costs_.shape or not scores_.size:
        raise ValueError(f"answer_scores and costs must have one entry per answer, at least one; got {scores_.size} and {costs_.size}")
    if not (np.isfinite(cost_weight) and cost_weight >= 0):
        raise ValueError(f"cost_weight must be a number of at least 0, got {cost_weight}")
    return scores_, costs_


def _checked_costs(costs: npt.ArrayLike) -> FloatArray:
    checked = _vector("costs", costs)
    if (checked < 0).any():
        raise ValueError(f"costs must be at least 0 tokens, got {checked.min()}")
    return checked


def _vector(name: str, values: npt.ArrayLike) -> FloatArray:
    vector = np.array(values, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise ValueError(f"{name} must be one-dimensional and finite, got shape {vector.shape} and values {vector}")
    return vector
