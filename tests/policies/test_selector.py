"""The policy: what it reads, what it shares, what it never does."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from policies.selector import SelectorPolicy, selector_sizes

D, K, F = 6, 3, 4


def observation_space(**changes: spaces.Space[Any]) -> spaces.Dict:
    """Return the space of a small environment."""
    entries: dict[str, spaces.Space[Any]] = {
        "query": spaces.Box(-1, 1, (D,), np.float32),
        "summaries": spaces.Box(-1, 1, (K * D,), np.float32),
        "available": spaces.MultiBinary([K, F]),
        "token_costs": spaces.Box(0, 1e6, (K * F,), np.float32),
    }
    return spaces.Dict(entries | changes)


def build(**options: Any) -> SelectorPolicy:
    """Return a policy with small layers; ``spread`` makes its logits differ visibly."""
    torch.manual_seed(0)
    policy = SelectorPolicy(observation_space(), spaces.MultiBinary(K * F), lambda _: 1e-3, **({"hidden_sizes": (16, 8)} | options))
    with torch.no_grad():
        policy.network.logit_layer.weight.mul_(100)
    return policy


def observe(batch: int = 5, seed: int = 0) -> dict[str, Tensor]:
    """Return random observations; memory 2 of the first row shows nothing, the last row has no memories."""
    generator = torch.Generator().manual_seed(seed)
    unit = torch.nn.functional.normalize
    available = (torch.rand(batch, K, F, generator=generator) < 0.7).to(torch.int8)
    available[0, 2] = 0
    available[-1] = 0
    return {
        "query": unit(torch.randn(batch, D, generator=generator), dim=-1),
        "summaries": unit(torch.randn(batch, K, D, generator=generator), dim=-1).flatten(1),
        "available": available,
        "token_costs": torch.rand(batch, K * F, generator=generator),
    }


def test_first_layer_is_the_joint_projection() -> None:
    """W_q q + W_s s equals W [q; s], each memory by itself: Eq. 5 written out in NumPy."""
    policy, obs = build(), observe()
    state = {name: tensor.double().numpy() for name, tensor in policy.network.state_dict().items()}
    query, summaries = obs["query"].double().numpy(), obs["summaries"].reshape(5, K, D).double().numpy()
    joint = np.concatenate([state["query_layer.weight"], state["summary_layer.weight"]], axis=1)
    expected = np.empty((5, K, F))
    for row in range(5):
        for memory in range(K):
            hidden = np.concatenate([query[row], summaries[row, memory]]) * math.sqrt(D)
            hidden = np.maximum(joint @ hidden + state["query_layer.bias"], 0)
            hidden = np.maximum(state["hidden_layers.0.weight"] @ hidden + state["hidden_layers.0.bias"], 0)
            expected[row, memory] = state["logit_layer.weight"] @ hidden + state["logit_layer.bias"]
    logits = policy.logits(obs["query"], obs["summaries"].reshape(5, K, D)).numpy()
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)  # float32 sums against float64


def test_weights_are_shared_over_memories() -> None:
    policy, obs = build(), observe()
    summaries = obs["summaries"].reshape(5, K, D)
    order = torch.tensor([2, 0, 1])
    swapped = policy.logits(obs["query"], summaries[:, order])
    torch.testing.assert_close(swapped, policy.logits(obs["query"], summaries)[:, order])


def test_every_form_starts_at_one_half() -> None:
    torch.manual_seed(1)
    policy = SelectorPolicy(observation_space(), spaces.MultiBinary(K * F), lambda _: 1e-3)
    probabilities = torch.sigmoid(policy.logits(torch.eye(D), torch.eye(D).repeat(K, 1, 1).transpose(0, 1)))
    assert (probabilities - 0.5).abs().max() < 0.02


def test_value_ignores_memories_that_show_nothing_and_token_costs() -> None:
    policy, obs = build(), observe()
    values = policy.predict_values(obs)
    changed = {name: tensor.clone() for name, tensor in obs.items()}
    changed["summaries"].reshape(5, K, D)[0, 2] = 9.0
    changed["token_costs"] += 1000
    torch.testing.assert_close(policy.predict_values(changed), values, rtol=0, atol=0)
    assert values[-1].item() == policy.network.value_layer.bias.item()
    changed["summaries"].reshape(5, K, D)[1, 0] = 9.0
    assert obs["available"][1, 0].any() and not torch.equal(policy.predict_values(changed)[1], values[1])


def test_absent_forms_are_never_set_and_masked_rows_work() -> None:
    policy, obs = build(), observe(batch=64)
    mask = obs["available"].flatten(1)
    for deterministic in (False, True):
        actions, values, log_prob = policy(obs, deterministic=deterministic)
        assert actions.shape == (64, K * F) and values.shape == (64, 1) and log_prob.shape == (64,)
        assert (actions[mask == 0] == 0).all()
        assert actions.any()
        assert log_prob[-1] == 0


def test_evaluate_actions_agrees_with_forward() -> None:
    policy, obs = build(), observe()
    actions, values, log_prob = policy(obs)
    as_stored = {name: tensor.float() for name, tensor in obs.items()}  # SB3's buffer may return float32
    again_values, again_log_prob, entropy = policy.evaluate_actions(as_stored, actions)
    torch.testing.assert_close(again_values, values)
    torch.testing.assert_close(again_log_prob, log_prob)
    torch.testing.assert_close(entropy, policy.get_distribution(obs).entropy())
    torch.testing.assert_close(policy._predict(obs, deterministic=True), policy.get_distribution(obs).mode())


def test_predict_takes_numpy_and_single_observations() -> None:
    policy, obs = build(), observe()
    arrays = {name: tensor.numpy() for name, tensor in obs.items()}
    batch, _ = policy.predict(arrays, deterministic=True)
    single, _ = policy.predict({name: array[1] for name, array in arrays.items()}, deterministic=True)
    assert batch.shape == (5, K * F) and single.shape == (K * F,)
    np.testing.assert_array_equal(batch[1], single)


def test_options_change_what_they_name() -> None:
    obs = observe()
    unit_norm = build(input_scale=1.0)
    query, summaries = obs["query"], obs["summaries"].reshape(5, K, D)
    scaled = build(input_scale=3.0)
    torch.testing.assert_close(scaled.logits(query, summaries), unit_norm.logits(3 * query, 3 * summaries))
    counts = obs["available"].flatten(1).sum(dim=1)
    summed, mean = build().get_distribution(obs).entropy(), build(entropy_reduction="mean").get_distribution(obs).entropy()
    torch.testing.assert_close(summed[:-1], mean[:-1] * counts[:-1])
    assert isinstance(build(activation="tanh").network._activate, torch.nn.Tanh)
    assert build(threshold=0.999).get_distribution(obs).mode().sum() < build(threshold=0.001).get_distribution(obs).mode().sum()


def test_policy_file_round_trip(tmp_path: Path) -> None:
    policy, obs = build(activation="tanh", input_scale=2.0, entropy_reduction="mean", threshold=0.3), observe()
    policy.save(str(tmp_path / "policy.pt"))
    loaded = SelectorPolicy.load(str(tmp_path / "policy.pt"), device="cpu")
    for name, tensor in policy.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name])
    assert torch.equal(loaded.get_distribution(obs).mode(), policy.get_distribution(obs).mode())
    assert torch.equal(loaded.get_distribution(obs).entropy(), policy.get_distribution(obs).entropy())


def test_no_parameter_is_outside_the_network() -> None:
    policy = build()
    names = {name for name, _ in policy.named_parameters()}
    assert names and all(name.startswith("network.") for name in names)
    optimised = {id(parameter) for group in policy.optimizer.param_groups for parameter in group["params"]}
    assert optimised == {id(parameter) for parameter in policy.parameters()}


@pytest.mark.parametrize(
    ("changes", "action", "message"),
    [
        ({"summaries": spaces.Box(-1, 1, (K * D + 1,), np.float32)}, spaces.MultiBinary(K * F), "summaries must have shape"),
        ({"available": spaces.MultiBinary(K * F)}, spaces.MultiBinary(K * F), "available must be MultiBinary"),
        ({"query": spaces.Box(-1, 1, (2, D), np.float32)}, spaces.MultiBinary(K * F), "query must have one axis"),
        ({}, spaces.MultiBinary(K * F + 1), "the action must be MultiBinary"),
        ({}, spaces.Discrete(4), "the action must be MultiBinary"),
    ],
)
def test_other_spaces_are_refused(changes: dict[str, spaces.Space[Any]], action: spaces.Space[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        selector_sizes(observation_space(**changes), action)


def test_spaces_without_the_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="needs a Dict"):
        selector_sizes(spaces.Box(-1, 1, (D,)), spaces.MultiBinary(4))
    with pytest.raises(ValueError, match="lacks summaries, available"):
        selector_sizes(spaces.Dict({"query": spaces.Box(-1, 1, (D,))}), spaces.MultiBinary(4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_sizes": ()}, "sizes must be positive"),
        ({"activation": "gelu"}, "activation must be one of"),
        ({"input_scale": 0.0}, "input_scale must be a positive number"),
        ({"use_sde": True}, "use_sde"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**options)
