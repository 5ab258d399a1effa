"""Composers: each decides which evidence forms of which memories a question is shown.

Fixed compositions are the baselines that a trained selector has to beat; `policies.inference.Selector` and a PPO
policy fit the same protocol.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.bool_]


class Composer(Protocol):
    """Decides for a batch of questions."""

    def select_batch(self, query: NDArray[np.float32], summaries: NDArray[np.float32], available: Bits) -> Bits:
        """Choose forms.

        Args:
            query: (B, d) float32, unit norm.
            summaries: (B, K, d) float32, unit norm, zero rows for absent memories.
            available: (B, K, F) bool.

        Returns:
            (B, K, F) bool, within ``available``.
        """


class Uniform:
    """Shows the same forms of every memory, where they exist; ``shown`` is (F,) bool."""

    def __init__(self, shown: Bits) -> None:
        self._shown = shown

    def select_batch(self, query: NDArray[np.float32], summaries: NDArray[np.float32], available: Bits) -> Bits:
        """The fixed forms, wherever available."""
        return available & self._shown


class Random:
    """Shows each available form with probability one half."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def select_batch(self, query: NDArray[np.float32], summaries: NDArray[np.float32], available: Bits) -> Bits:
        """Independent fair coins."""
        return available & (self._rng.random(available.shape) < 0.5)


def uniform_composers(forms: Sequence[str]) -> dict[str, Uniform]:
    """Every non-empty subset of the forms (31 of five), named by its forms joined with ``+``, small subsets first."""
    composers = {}
    for size in range(1, len(forms) + 1):
        for subset in combinations(range(len(forms)), size):
            shown = np.isin(np.arange(len(forms)), subset)
            composers["+".join(forms[place] for place in subset)] = Uniform(shown)
    return composers
