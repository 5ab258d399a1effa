"""The selector's network: one small MLP applied to every (query, summary) pair (HiVe-Mem Eq. 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

Activation = Literal["relu", "tanh"]
_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


class SelectorNetwork(nn.Module):
    """Shared trunk over memories, one logit per evidence form, and a value of the whole candidate set.

    The first layer acts on [E(q); E(s)] as W_q E(q) + W_s E(s), so the query is projected once and not once per memory.
    """

    def __init__(self, *, dimension: int, forms: int, hidden_sizes: Sequence[int], activation: Activation, input_scale: float) -> None:
        """Build and initialise the layers from torch's global generator.

        Args:
            dimension: Length d of the query and summary embeddings.
            forms: Number F of evidence forms.
            hidden_sizes: Widths of the hidden layers, at least one.
            activation: ``relu`` or ``tanh``.
            input_scale: Factor on the unit-norm inputs; sqrt(d) gives them unit variance, 1 is the paper's.

        Raises:
            ValueError: For an empty or non-positive layout, an unknown activation or a non-positive scale.
        """
        super().__init__()
        if not hidden_sizes or min(hidden_sizes) < 1 or dimension < 1 or forms < 1:
            raise ValueError(f"sizes must be positive: dimension {dimension}, forms {forms}, hidden_sizes {tuple(hidden_sizes)}")
        if activation not in _ACTIVATIONS:
            raise ValueError(f"activation must be one of {sorted(_ACTIVATIONS)}, not {activation!r}")
        if not (math.isfinite(input_scale) and input_scale > 0):
            raise ValueError(f"input_scale must be a positive number, not {input_scale!r}")
        self.activation = activation
        self.input_scale = float(input_scale)
        first = hidden_sizes[0]
        self.query_layer = nn.Linear(dimension, first)
        self.summary_layer = nn.Linear(dimension, first, bias=False)
        self.hidden_layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(hidden_sizes))
        self.logit_layer = nn.Linear(hidden_sizes[-1], forms)
        self.value_layer = nn.Linear(hidden_sizes[-1], 1)
        self._activate = _ACTIVATIONS[activation]()
        self._initialise()

    def _initialise(self) -> None:
        joint = torch.empty(self.query_layer.out_features, 2 * self.query_layer.in_features)
        nn.init.orthogonal_(joint, gain=math.sqrt(2.0))
        with torch.no_grad():
            self.query_layer.weight.copy_(joint[:, : self.query_layer.in_features])
            self.summary_layer.weight.copy_(joint[:, self.query_layer.in_features :])
        for layer in self.hidden_layers:
            assert isinstance(layer, nn.Linear)
            nn.init.orthogonal_(layer.weight, gain=math.sqrt(2.0))
            nn.init.zeros_(layer.bias)
        # Nearly zero, so that every form starts with probability 0.5 (Table 3).
        nn.init.orthogonal_(self.logit_layer.weight, gain=0.01)
        nn.init.orthogonal_(self.value_layer.weight, gain=1.0)
        for output in (self.query_layer, self.logit_layer, self.value_layer):
            nn.init.zeros_(output.bias)

    def features(self, query: Tensor, summaries: Tensor) -> Tensor:
        """Return the trunk's output for every memory, float (B, K, H).

        Args:
            query: Unit-norm query embeddings, float (B, d).
            summaries: Unit-norm summary embeddings, float (B, K, d); zero rows for absent memories.
        """
        hidden = self.query_layer(query * self.input_scale).unsqueeze(1) + self.summary_layer(summaries * self.input_scale)
        hidden = self._activate(hidden)
        for layer in self.hidden_layers:
            hidden = self._activate(layer(hidden))
        return torch.as_tensor(hidden)

    def logits(self, features: Tensor) -> Tensor:
        """Return the log-odds of every form of every memory, float (B, K, F)."""
        return torch.as_tensor(self.logit_layer(features))

    def value(self, features: Tensor, valid: Tensor) -> Tensor:
        """Return the expected reward of each row, float (B, 1).

        Args:
            features: Trunk output, float (B, K, H).
            valid: Memories that can show at least one form, bool (B, K); the others do not count. A row without any has the value
                of the zero feature.
        """
        weights = valid.to(features.dtype).unsqueeze(-1)
        pooled = (features * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)
        return torch.as_tensor(self.value_layer(pooled))
