"""The learned planner's policy: what it may choose, what it shares, that it learns, and that its export chooses alike."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import MaskablePPO

from policies.errors import ArtefactError
from policies.planner import PROGRESS, PlannerPolicy
from policies.planner_export import export_planner
from policies.planner_inference import Planner

D, TABLES, SLOTS, TOOLS, OTHERS, STEPS = 8, 2, 4, 2, 3, 3
N_ACTIONS = TABLES * TOOLS + OTHERS
STOP = N_ACTIONS - 1
OPTIONS = {"tables": TABLES, "table_tools": TOOLS, "hidden_sizes": (32, 32)}


def planner_spaces() -> tuple[spaces.Dict, spaces.Discrete]:
    observation = spaces.Dict(
        {
            "query": spaces.Box(-1, 1, (D,), np.float32),
            "candidates": spaces.Box(-1, 1, (SLOTS * D,), np.float32),
            "scores": spaces.Box(-2, 2, (SLOTS,), np.float32),
            "present": spaces.MultiBinary(SLOTS),
            "executed": spaces.Box(0, 1, (STEPS * N_ACTIONS,), np.float32),
            "outcomes": spaces.Box(0, 1, (STEPS,), np.float32),
            "budget": spaces.Box(0, 1, (2,), np.float32),
        }
    )
    return observation, spaces.Discrete(N_ACTIONS)


class MatchingTable(gymnasium.Env[dict[str, NDArray[Any]], np.int64]):
    """Two steps are best: the second tool on the table that is like the query, then stop. Everything else earns nothing."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.observation_space, self.action_space = planner_spaces()
        self.taken: list[int] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        super().reset(seed=seed)
        self.taken = []
        vectors = self.np_random.standard_normal((SLOTS, D))
        self.candidates = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        self.right = int(self.np_random.integers(TABLES))
        return self.observation(), {}

    def observation(self) -> dict[str, NDArray[Any]]:
        executed = np.zeros((STEPS, N_ACTIONS), np.float32)
        for place, action in enumerate(self.taken):
            executed[place, action] = 1
        return {
            "query": self.candidates[self.right].copy(),
            "candidates": self.candidates.reshape(-1).copy(),
            "scores": (self.candidates @ self.candidates[self.right]).astype(np.float32),
            "present": np.ones(SLOTS, np.int8),
            "executed": executed.reshape(-1),
            "outcomes": np.zeros(STEPS, np.float32),
            "budget": np.array([1, (STEPS - len(self.taken)) / STEPS], np.float32),
        }

    def action_masks(self) -> NDArray[np.bool_]:
        allowed = np.ones(N_ACTIONS, np.bool_)
        allowed[:STOP] = len(self.taken) < STEPS
        return allowed

    def step(self, action: np.int64) -> tuple[dict[str, NDArray[Any]], float, bool, bool, dict[str, Any]]:
        assert self.action_masks()[action]
        if action != STOP:
            self.taken.append(int(action))
            return self.observation(), 0.0, False, False, {}
        return self.observation(), float(self.taken == [TABLES + self.right]), True, False, {}


def policy(seed: int = 0) -> PlannerPolicy:
    torch.manual_seed(seed)
    return PlannerPolicy(*planner_spaces(), lambda _: 1e-3, **OPTIONS)  # type: ignore[arg-type]


def observations(n: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    space, _ = planner_spaces()
    space.seed(seed)
    rows = [space.sample() for _ in range(n)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def test_masked_actions_are_never_chosen() -> None:
    rng = np.random.default_rng(0)
    masks = rng.random((500, N_ACTIONS)) < 0.4
    masks[:, STOP] |= ~masks.any(axis=1)
    for deterministic in (True, False):
        actions, _ = policy().predict(observations(500), deterministic=deterministic, action_masks=masks)
        assert masks[np.arange(500), np.asarray(actions)].all()


def test_a_tables_score_does_not_depend_on_its_slot() -> None:
    one = {name: torch.from_numpy(value) for name, value in observations(4).items()}
    other = dict(one)
    other["candidates"] = one["candidates"].reshape(4, SLOTS, D)[:, [1, 0, 2, 3]].reshape(4, -1)
    other["scores"] = one["scores"][:, [1, 0, 2, 3]]
    other["present"] = one["present"][:, [1, 0, 2, 3]]
    swapped_actions = [1, 0, 3, 2, 4, 5, 6]
    other["executed"] = one["executed"].reshape(4, STEPS, N_ACTIONS)[:, :, swapped_actions].reshape(4, -1)
    model = policy()
    with torch.no_grad():
        logits, swapped = (model.get_distribution(found).distribution.logits for found in (one, other))  # type: ignore[union-attr]
    differences = logits - swapped[:, swapped_actions]
    table_parts = differences[:, :4] - differences[:, :1]  # logits are normalised over all actions: only differences count
    np.testing.assert_allclose(table_parts.numpy(), 0, atol=1e-5)
    assert (logits[:, 0] - logits[:, 1]).abs().max() > 1e-4  # the two slots are told apart


def test_a_known_best_sequence_is_learnt() -> None:
    model = MaskablePPO(
        PlannerPolicy, MatchingTable(), n_steps=256, batch_size=64, n_epochs=6, learning_rate=2e-3, gamma=1.0, gae_lambda=1.0,
        ent_coef=0.01, policy_kwargs=OPTIONS, seed=0, device="cpu",
    )  # fmt: skip
    model.learn(10_000)
    env = MatchingTable()
    rewards = []
    for number in range(200):
        observation, _ = env.reset(seed=1000 + number)
        terminated = False
        while not terminated:
            action, _ = model.predict(observation, deterministic=True, action_masks=env.action_masks())
            observation, reward, terminated, _, _ = env.step(np.int64(action))
        rewards.append(reward)
    assert np.mean(rewards) >= 0.95


def test_the_export_chooses_as_the_policy_does(tmp_path: Path) -> None:
    model = policy(1)
    document = export_planner(
        model, tmp_path / "planner", actions=[f"a{n}" for n in range(N_ACTIONS)], encoder_id="e", metric_profile="m", provenance={"seed": 1}
    )
    assert document["parity"]["largest_error"] <= 1e-5
    planner = Planner.load(tmp_path / "planner", encoder_id="e")
    seen = observations(200, seed=3)
    masks = np.random.default_rng(1).random((200, N_ACTIONS)) < 0.5
    masks[:, STOP] |= ~masks.any(axis=1)
    expected, _ = model.predict(seen, deterministic=True, action_masks=masks)
    found = planner.choose(
        query=seen["query"],
        candidates=seen["candidates"].reshape(200, SLOTS, D),
        scores=seen["scores"],
        present=seen["present"].astype(np.float32),
        progress=np.concatenate([seen[name].reshape(200, -1) for name in PROGRESS], axis=1),
        mask=masks,
    )
    np.testing.assert_array_equal(found, expected)


def test_a_damaged_or_foreign_export_is_refused(tmp_path: Path) -> None:
    export_planner(policy(), tmp_path / "p", actions=["x"] * N_ACTIONS, encoder_id="e", metric_profile="m", provenance={})
    with pytest.raises(ArtefactError, match="not of other"):
        Planner.load(tmp_path / "p", encoder_id="other")
    (tmp_path / "p" / "planner.onnx").write_bytes(b"x")
    with pytest.raises(ArtefactError, match="not the file"):
        Planner.load(tmp_path / "p")
    (tmp_path / "p" / "planner.json").write_text("[]")
    with pytest.raises(ArtefactError, match="does not describe"):
        Planner.load(tmp_path / "p")
