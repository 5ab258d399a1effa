"""The learned planner's network: one small MLP for every table slot, another for retrieval, stopping and the value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from policies.network import Activation

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


@dataclass(frozen=True)
class PlannerSizes:
    """The layout of the observation and the actions.

    ``dimension`` d of the embeddings; ``tables`` and ``episodes`` are slots of the planning context; ``table_tools`` T apply to every
    table slot; ``other_actions`` follow them. A rollout has at most ``steps`` actions, and ``state`` more numbers tell how far it is.
    """

    dimension: int
    tables: int
    episodes: int
    table_tools: int
    other_actions: int
    steps: int
    state: int

    @property
    def actions(self) -> int:
        """All actions: table tools first, tool by tool, then the others."""
        return self.table_tools * self.tables + self.other_actions

    @property
    def progress(self) -> int:
        """Length of all that tells how far a rollout is: the one-hot actions of its steps, then the state."""
        return self.steps * self.actions + self.state


class PlannerNetwork(nn.Module):
    """Scores all actions with weights shared over table slots, so that a table's place in the context decides nothing by itself."""

    def __init__(self, sizes: PlannerSizes, *, hidden_sizes: Sequence[int], activation: Activation, input_scale: float) -> None:
        """Build and initialise the layers from torch's global generator.

        Args:
            sizes: The layout.
            hidden_sizes: Widths of the hidden layers of both MLPs, at least one.
            activation: ``relu`` or ``tanh``.
            input_scale: Factor on the unit-norm embeddings; sqrt(d) gives them unit variance.
        """
        super().__init__()
        self.sizes = sizes
        self.activation = activation
        self.input_scale = float(input_scale)
        used = sizes.steps * sizes.table_tools
        shared_inputs = sizes.dimension + used + sizes.steps * sizes.other_actions + sizes.state
        slot_inputs = sizes.dimension + 1 + used + shared_inputs
        whole_inputs = sizes.dimension + 2 * (sizes.tables + sizes.episodes) + shared_inputs
        self.slot_layers = _layers(slot_inputs, hidden_sizes)
        self.whole_layers = _layers(whole_inputs, hidden_sizes)
        self.slot_logits = nn.Linear(hidden_sizes[-1], sizes.table_tools)
        self.whole_logits = nn.Linear(hidden_sizes[-1], sizes.other_actions)
        self.value_layer = nn.Linear(hidden_sizes[-1], 1)
        self._activate = _ACTIVATIONS[activation]()
        for head, gain in ((self.slot_logits, 0.01), (self.whole_logits, 0.01), (self.value_layer, 1.0)):
            nn.init.orthogonal_(head.weight, gain=gain)
            nn.init.zeros_(head.bias)

    def forward(self, query: Tensor, candidates: Tensor, scores: Tensor, present: Tensor, progress: Tensor) -> tuple[Tensor, Tensor]:
        """Score actions.

        Args:
            query: Unit-norm question embeddings, float (B, d).
            candidates: Embeddings of the table slots, then the episode slots, float (B, slots, d); zero where empty.
            scores: Eq. 9's h of every slot, float (B, slots).
            present: 1 where a slot is filled, float (B, slots).
            progress: One-hot actions of the steps taken, then what came of them and the budget, float (B, progress).

        Returns:
            Logits (B, actions) and values (B, 1).
        """
        sizes = self.sizes
        scaled = candidates * self.input_scale
        executed = progress[:, : sizes.steps * sizes.actions].reshape(-1, sizes.steps, sizes.actions)
        n_table_actions = sizes.table_tools * sizes.tables
        others = executed[:, :, n_table_actions:].flatten(1)
        by_tool = executed[:, :, :n_table_actions].reshape(-1, sizes.steps, sizes.table_tools, sizes.tables)
        by_slot = by_tool.permute(0, 3, 1, 2).flatten(2)  # (B, tables, steps * tools)
        state = progress[:, sizes.steps * sizes.actions :]
        # A slot knows which tools read it and which read any table; not which slot that was.
        shared = torch.cat([query * self.input_scale, by_slot.sum(dim=1), others, state], dim=1)
        per_slot = [scaled[:, : sizes.tables], scores[:, : sizes.tables, None], by_slot, shared.unsqueeze(1).expand(-1, sizes.tables, -1)]
        slots = self._run(self.slot_layers, torch.cat(per_slot, dim=2))
        weights = present[:, sizes.tables :, None]
        episodes = (scaled[:, sizes.tables :] * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)
        whole = self._run(self.whole_layers, torch.cat([episodes, scores, present, shared], dim=1))
        table_logits = self.slot_logits(slots).transpose(1, 2).flatten(1)  # tool by tool, as the actions are numbered
        return torch.cat([table_logits, self.whole_logits(whole)], dim=1), torch.as_tensor(self.value_layer(whole))

    def _run(self, layers: nn.ModuleList, inputs: Tensor) -> Tensor:
        for layer in layers:
            inputs = self._activate(layer(inputs))
        return inputs


def _layers(inputs: int, hidden_sizes: Sequence[int]) -> nn.ModuleList:
    layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([inputs, *hidden_sizes]))
    for layer in layers:
        assert isinstance(layer, nn.Linear)
        nn.init.orthogonal_(layer.weight, gain=math.sqrt(2.0))
        nn.init.zeros_(layer.bias)
    return layers
