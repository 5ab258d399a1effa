"""The evidence selector as a Stable-Baselines3 actor-critic policy (HiVe-Mem section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from policies.bernoulli import MaskedBernoulli, Reduction
from policies.network import Activation, SelectorNetwork

Observation = Mapping[str, Tensor]


def selector_sizes(observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> tuple[int, int, int]:
    """Read (embedding dimension d, memories K, forms F) from the spaces of an evidence-selection environment.

    Args:
        observation_space: A Dict with ``query`` Box (d,), ``summaries`` Box (K*d,) and ``available`` MultiBinary (K, F); other entries
            are ignored.
        action_space: MultiBinary (K*F).

    Raises:
        ValueError: If the spaces do not have these shapes, with every problem found.
    """
    if not isinstance(observation_space, spaces.Dict):
        raise ValueError(f"the selector needs a Dict observation with query, summaries and available, not {observation_space}")
    missing = [name for name in ("query", "summaries", "available") if name not in observation_space.spaces]
    if missing:
        raise ValueError(f"the observation lacks {', '.join(missing)}; it has {', '.join(observation_space.spaces)}")
    query, summaries, available = (observation_space[name].shape for name in ("query", "summaries", "available"))
    problems = []
    if query is None or len(query) != 1:
        problems.append(f"query must have one axis, not shape {query}")
    if available is None or len(available) != 2 or not isinstance(observation_space["available"], spaces.MultiBinary):
        problems.append(f"available must be MultiBinary((memories, forms)), not {observation_space['available']}")
    if problems:
        raise ValueError("; ".join(problems))
    assert query is not None and available is not None
    (dimension,), (memories, forms) = query, available
    if summaries != (memories * dimension,):
        problems.append(f"summaries must have shape ({memories} * {dimension},), not {summaries}")
    if not isinstance(action_space, spaces.MultiBinary) or action_space.shape != (memories * forms,):
        problems.append(f"the action must be MultiBinary({memories} * {forms}), not {action_space}")
    if problems:
        raise ValueError("; ".join(problems))
    return dimension, memories, forms


class SelectorPolicy(ActorCriticPolicy):
    """Chooses evidence forms for all candidate memories at once, with weights shared over memories.

    Only ``query``, ``summaries`` and ``available`` are read: token costs in the observation reach neither actor nor critic.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        use_sde: bool = False,
        *,
        hidden_sizes: Sequence[int] = (256, 256, 256),
        activation: Activation = "relu",
        input_scale: float | None = None,
        entropy_reduction: Reduction = "sum",
        threshold: float = 0.5,
    ) -> None:
        """Build the network and its optimiser.

        Args:
            observation_space: See `selector_sizes`.
            action_space: See `selector_sizes`.
            lr_schedule: Learning rate as a function of the remaining progress in [0, 1].
            use_sde: Always false; PPO passes it to every policy.
            hidden_sizes: Widths of the hidden layers (Table 3: three of 256).
            activation: ``relu`` or ``tanh``.
            input_scale: Factor on the unit-norm embeddings; ``None`` is sqrt(d), which gives every input unit variance, and 1 is the
                paper's.
            entropy_reduction: ``sum`` (the product policy's entropy) or ``mean`` over available bits.
            threshold: Probability above which a form is selected deterministically.

        Raises:
            ValueError: If the spaces or an option do not fit.
        """
        if use_sde:
            raise ValueError("state-dependent exploration is for continuous actions; set use_sde=False")
        self.dimension, self.memories, self.forms = selector_sizes(observation_space, action_space)
        self.hidden_sizes = tuple(int(size) for size in hidden_sizes)
        self.hidden_activation: Activation = activation
        self.input_scale = math.sqrt(self.dimension) if input_scale is None else float(input_scale)
        self.entropy_reduction: Reduction = entropy_reduction
        self.threshold = float(threshold)
        # The base class makes a flattening extractor without parameters; `_build` replaces everything that learns.
        super().__init__(observation_space, action_space, lr_schedule, net_arch=[], optimizer_kwargs={"fused": True, "eps": 1e-5})

    def _build(self, lr_schedule: Schedule) -> None:
        self.network = SelectorNetwork(
            dimension=self.dimension,
            forms=self.forms,
            hidden_sizes=self.hidden_sizes,
            activation=self.hidden_activation,
            input_scale=self.input_scale,
        )
        self.optimizer = self.optimizer_class(self.network.parameters(), lr=lr_schedule(1.0), **self.optimizer_kwargs)  # type: ignore[call-arg]  # SB3 types the base class of all optimisers

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "hidden_sizes": self.hidden_sizes,
            "activation": self.hidden_activation,
            "input_scale": self.input_scale,
            "entropy_reduction": self.entropy_reduction,
            "threshold": self.threshold,
        }

    def _read(self, obs: Observation) -> tuple[Tensor, Tensor]:
        """Return (trunk features (B, K, H), availability bool (B, K, F))."""
        query = obs["query"].float()
        batch = query.shape[0]
        features = self.network.features(query, obs["summaries"].float().reshape(batch, self.memories, self.dimension))
        return features, obs["available"].reshape(batch, self.memories, self.forms) > 0.5

    def _distribution(self, features: Tensor, available: Tensor) -> MaskedBernoulli:
        return MaskedBernoulli(
            self.network.logits(features).flatten(1),
            available.flatten(1),
            threshold=self.threshold,
            entropy_reduction=self.entropy_reduction,
        )

    def forward(self, obs: Observation, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]  # SB3 types obs as one tensor
        """Return (actions (B, K*F), values (B, 1), log-probabilities (B,)) for a batch of observations."""
        features, available = self._read(obs)
        distribution = self._distribution(features, available)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.network.value(features, available.any(dim=-1)), distribution.log_prob(actions)

    def evaluate_actions(self, obs: Observation, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]  # as above
        """Return (values (B, 1), log-probabilities (B,), entropies (B,)) of given actions (B, K*F)."""
        features, available = self._read(obs)
        distribution = self._distribution(features, available)
        values = self.network.value(features, available.any(dim=-1))
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Observation) -> MaskedBernoulli:  # type: ignore[override]  # SB3's class has methods for continuous actions
        """Return the action distribution of a batch of observations."""
        return self._distribution(*self._read(obs))

    def predict_values(self, obs: Observation) -> Tensor:  # type: ignore[override]  # as for forward
        """Return the values of a batch of observations, float (B, 1)."""
        features, available = self._read(obs)
        return self.network.value(features, available.any(dim=-1))

    def _predict(self, observation: Observation, deterministic: bool = False) -> Tensor:  # type: ignore[override]  # as for forward
        return self.get_distribution(observation).get_actions(deterministic=deterministic)

    def logits(self, query: Tensor, summaries: Tensor) -> Tensor:
        """Return the log-odds of every form for any number N of memories, float (B, N, F).

        Args:
            query: Unit-norm query embeddings, float (B, d).
            summaries: Unit-norm summary embeddings, float (B, N, d).
        """
        with torch.no_grad():
            return self.network.logits(self.network.features(query, summaries))
