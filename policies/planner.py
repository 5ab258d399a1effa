"""The learned planner as an actor-critic policy of sb3-contrib's PPO with masked actions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib.common.maskable.distributions import MaskableCategoricalDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor

from policies.network import Activation
from policies.planner_network import PlannerNetwork, PlannerSizes

Observation = Mapping[str, Tensor]
PROGRESS = ("executed", "outcomes", "budget")
"""The entries of the observation that tell how far a rollout is."""


def planner_sizes(observation_space: spaces.Space[Any], action_space: spaces.Space[Any], *, tables: int, table_tools: int) -> PlannerSizes:
    """Read the layout from the spaces of a tool-planning environment.

    Args:
        observation_space: A Dict with ``query`` Box (d,), ``candidates`` Box (slots * d,), ``scores`` Box (slots,), ``present``
            MultiBinary(slots) and the entries of `PROGRESS`.
        action_space: Discrete(table_tools * tables + others).
        tables: Table slots; the other slots are episodes.
        table_tools: Tools that apply to a table.

    Raises:
        ValueError: If the spaces do not have these shapes.
    """
    if not isinstance(observation_space, spaces.Dict) or not isinstance(action_space, spaces.Discrete):
        raise ValueError(f"the planner needs a Dict observation and Discrete actions, not {observation_space} and {action_space}")
    wanted = ("query", "candidates", "scores", "present", *PROGRESS)
    if missing := [name for name in wanted if name not in observation_space.spaces]:
        raise ValueError(f"the observation lacks {', '.join(missing)}; it has {', '.join(observation_space.spaces)}")
    length = {name: math.prod(observation_space[name].shape or (0,)) for name in wanted}
    slots, dimension = length["scores"], length["query"]
    actions = int(action_space.n)
    others = actions - table_tools * tables
    fits = length["candidates"] == slots * dimension and length["present"] == slots and length["executed"] % actions == 0
    if not fits or tables > slots or others < 1:
        raise ValueError(f"lengths do not fit: {length}, {tables} tables with {table_tools} tools, {actions} actions")
    state = sum(length[name] for name in PROGRESS[1:])
    return PlannerSizes(dimension, tables, slots - tables, table_tools, others, length["executed"] // actions, state)


class PlannerPolicy(MaskableActorCriticPolicy):
    """Chooses one of the actions that the mask allows."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        tables: int,
        table_tools: int,
        hidden_sizes: Sequence[int] = (256, 256),
        activation: Activation = "relu",
        input_scale: float | None = None,
    ) -> None:
        """Build the network and its optimiser.

        Args:
            observation_space: See `planner_sizes`.
            action_space: See `planner_sizes`.
            lr_schedule: Learning rate as a function of the remaining progress in [0, 1].
            tables: Table slots.
            table_tools: Tools that apply to a table.
            hidden_sizes: Widths of the hidden layers.
            activation: ``relu`` or ``tanh``.
            input_scale: Factor on the unit-norm embeddings; ``None`` is sqrt(d).
        """
        self.planner_sizes = planner_sizes(observation_space, action_space, tables=tables, table_tools=table_tools)
        self.hidden_sizes = tuple(int(size) for size in hidden_sizes)
        self.hidden_activation: Activation = activation
        self.input_scale = math.sqrt(self.planner_sizes.dimension) if input_scale is None else float(input_scale)
        super().__init__(observation_space, action_space, lr_schedule, net_arch=[], optimizer_kwargs={"eps": 1e-5})

    def _build(self, lr_schedule: Schedule) -> None:
        self.network = PlannerNetwork(
            self.planner_sizes, hidden_sizes=self.hidden_sizes, activation=self.hidden_activation, input_scale=self.input_scale
        )
        self.optimizer = self.optimizer_class(self.network.parameters(), lr=lr_schedule(1.0), **self.optimizer_kwargs)  # type: ignore[call-arg]  # SB3 types the base class of all optimisers

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            "tables": self.planner_sizes.tables,
            "table_tools": self.planner_sizes.table_tools,
            "hidden_sizes": self.hidden_sizes,
            "activation": self.hidden_activation,
            "input_scale": self.input_scale,
        }

    def _read(self, obs: Observation, masks: NDArray[np.bool_] | Tensor | None) -> tuple[MaskableCategoricalDistribution, Tensor]:
        batch = obs["query"].shape[0]
        logits, values = self.network(
            obs["query"].float(),
            obs["candidates"].float().reshape(batch, -1, self.planner_sizes.dimension),
            obs["scores"].float(),
            obs["present"].float().reshape(batch, -1),
            torch.cat([obs[name].float().reshape(batch, -1) for name in PROGRESS], dim=1),
        )
        distribution = MaskableCategoricalDistribution(self.planner_sizes.actions)
        distribution.proba_distribution(logits)
        distribution.apply_masking(masks)
        return distribution, values

    def forward(  # type: ignore[override]  # SB3 types obs as one tensor
        self, obs: Observation, deterministic: bool = False, action_masks: NDArray[np.bool_] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return (actions (B,), values (B, 1), log-probabilities (B,)) for a batch of observations."""
        distribution, values = self._read(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, values, distribution.log_prob(actions)

    def evaluate_actions(  # type: ignore[override]  # as above
        self, obs: Observation, actions: Tensor, action_masks: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return (values (B, 1), log-probabilities (B,), entropies (B,)) of given actions (B,)."""
        distribution, values = self._read(obs, action_masks)
        return values, distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Observation, action_masks: NDArray[np.bool_] | None = None) -> MaskableCategoricalDistribution:  # type: ignore[override]  # as above
        """Return the action distribution of a batch of observations."""
        return self._read(obs, action_masks)[0]

    def predict_values(self, obs: Observation) -> Tensor:  # type: ignore[override]  # as above
        """Return the values of a batch of observations, float (B, 1)."""
        return self._read(obs, None)[1]

    def _predict(  # type: ignore[override]  # as above
        self, observation: Observation, deterministic: bool = False, action_masks: NDArray[np.bool_] | None = None
    ) -> Tensor:
        return self.get_distribution(observation, action_masks).get_actions(deterministic=deterministic)
