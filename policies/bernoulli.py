"""The action distribution: independent bits of which some are unavailable (HiVe-Mem Eq. 10)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Reduction = Literal["sum", "mean"]


def threshold_logit(threshold: float) -> float:
    """Return the logit above which a bit is selected.

    Comparing logits is exact where comparing float32 probabilities is not, and gives torch and NumPy the same rule.

    Args:
        threshold: Probability in (0, 1) that must be exceeded.

    Raises:
        ValueError: If the threshold is not strictly between 0 and 1.
    """
    if not 0.0 < threshold < 1.0:
        raise ValueError(f"threshold must lie strictly between 0 and 1, not {threshold!r}")
    return math.log(threshold) - math.log1p(-threshold)


class MaskedBernoulli:
    """A product of independent Bernoulli bits restricted to the available ones.

    An unavailable bit is never set, and contributes exactly 0 to log-probability, entropy and gradient. A row without any
    available bit is a distribution over the empty action alone.
    """

    def __init__(self, logits: Tensor, available: Tensor, *, threshold: float = 0.5, entropy_reduction: Reduction = "sum") -> None:
        """Hold the distribution of a batch.

        Args:
            logits: Log-odds of the bits, float (B, N).
            available: Which bits may be set, bool (B, N).
            threshold: A bit belongs to the mode when its probability exceeds this; exactly 0.5 is not selected at 0.5.
            entropy_reduction: ``sum`` for the entropy of the product (Eq. 10), ``mean`` for its average over the available bits.

        Raises:
            ValueError: If the shapes differ, the mask is not boolean or the reduction is unknown.
        """
        if logits.shape != available.shape or available.dtype != torch.bool:
            raise ValueError(
                f"logits {tuple(logits.shape)} need a boolean mask of their own shape, not {available.dtype} {tuple(available.shape)}"
            )
        if entropy_reduction not in ("sum", "mean"):
            raise ValueError(f"entropy_reduction must be 'sum' or 'mean', not {entropy_reduction!r}")
        # Replaced before any function is applied: whatever the network says of an absent form (inf, nan) cannot reach a gradient.
        self.logits = logits.masked_fill(~available, 0.0)
        self.available = available
        self.entropy_reduction = entropy_reduction
        self._threshold_logit = threshold_logit(threshold)

    @property
    def probabilities(self) -> Tensor:
        """Probability of each bit, float (B, N); 0 where unavailable."""
        return torch.sigmoid(self.logits) * self.available

    def sample(self) -> Tensor:
        """Draw one action per row from torch's global generator, float (B, N) of 0 and 1."""
        return torch.bernoulli(self.probabilities)

    def mode(self) -> Tensor:
        """Return the available bits whose probability exceeds the threshold, float (B, N) of 0 and 1."""
        return ((self.logits > self._threshold_logit) & self.available).to(self.logits.dtype)

    def get_actions(self, deterministic: bool = False) -> Tensor:
        """Return the mode if ``deterministic``, else a sample; float (B, N)."""
        return self.mode() if deterministic else self.sample()

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the joint log-probability of each row's available bits (the factors of Eq. 11), float (B,).

        Args:
            actions: Bits, 0 or 1, (B, N); the values of unavailable bits are ignored.
        """
        signs = 2.0 * actions.to(self.logits.dtype) - 1.0
        return -(functional.softplus(-signs * self.logits) * self.available).sum(dim=-1)

    def entropy(self) -> Tensor:
        """Return each row's entropy in nats, summed or averaged over the available bits, float (B,)."""
        size = self.logits.abs()
        # H(p) written with |logit|: no difference of large numbers, so a certain bit has entropy 0 and not rounding noise.
        bits = (functional.softplus(-size) + size * torch.sigmoid(-size)) * self.available
        total = bits.sum(dim=-1)
        if self.entropy_reduction == "sum":
            return total
        return total / self.available.sum(dim=-1).clamp(min=1)
