"""The masked Bernoulli distribution against torch's own, row by row."""

import math

import pytest
import torch
from torch.distributions import Bernoulli

from policies.bernoulli import MaskedBernoulli, threshold_logit


def draw(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return random logits, a random mask whose first row is empty, and random bits, each (9, 12)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 4.0 * torch.randn(9, 12, generator=generator, dtype=torch.float64)
    available = torch.rand(9, 12, generator=generator) < torch.rand(9, 1, generator=generator)
    available[0] = False
    return logits, available, torch.randint(0, 2, (9, 12), generator=generator).double()


@pytest.mark.parametrize("seed", range(20))
def test_matches_torch_over_the_available_bits(seed: int) -> None:
    logits, available, actions = draw(seed)
    logits.requires_grad_()
    twin = logits.detach().clone().requires_grad_()
    ours = MaskedBernoulli(logits, available)
    log_prob, entropy = ours.log_prob(actions), ours.entropy()
    mean = MaskedBernoulli(logits, available, entropy_reduction="mean").entropy()
    (gradient,) = torch.autograd.grad((log_prob + 0.3 * entropy).sum(), logits)

    total = torch.zeros((), dtype=torch.float64)
    for row in range(len(logits)):
        reference = Bernoulli(logits=twin[row][available[row]])
        row_log_prob = reference.log_prob(actions[row][available[row]]).sum()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        row_entropy = reference.entropy().sum()  # type: ignore[no-untyped-call]  # as above
        torch.testing.assert_close(log_prob[row], row_log_prob, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(entropy[row], row_entropy, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(mean[row], row_entropy / max(1, int(available[row].sum())), rtol=1e-9, atol=1e-12)
        total = total + row_log_prob + 0.3 * row_entropy
    (expected,) = torch.autograd.grad(total, twin)
    torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=1e-12)
    assert (gradient[~available] == 0).all()


@pytest.mark.parametrize("poison", [math.inf, -math.inf, math.nan])
def test_unavailable_bits_contribute_exactly_nothing(poison: float) -> None:
    logits, available, actions = draw(3)
    poisoned = logits.masked_fill(~available, poison).requires_grad_()
    clean, dirty = MaskedBernoulli(logits, available), MaskedBernoulli(poisoned, available)
    flipped = torch.where(available, actions, 1 - actions)
    assert torch.equal(dirty.log_prob(flipped), clean.log_prob(actions))
    assert torch.equal(dirty.entropy(), clean.entropy())
    assert torch.equal(dirty.mode(), clean.mode())
    assert dirty.log_prob(actions)[0] == 0 and dirty.entropy()[0] == 0
    (gradient,) = torch.autograd.grad((dirty.log_prob(actions) + dirty.entropy()).sum(), poisoned)
    assert torch.isfinite(gradient).all() and (gradient[~available] == 0).all()


def test_samples_follow_the_probabilities_and_the_mask() -> None:
    logits = torch.tensor([[0.0, 2.0, -1.0, 30.0]]).repeat(20_000, 1)
    available = torch.tensor([[True, True, True, False]]).repeat(20_000, 1)
    torch.manual_seed(0)
    samples = MaskedBernoulli(logits, available).sample()
    assert ((samples == 0) | (samples == 1)).all()
    assert (samples[:, 3] == 0).all()
    # sigmoid(0, 2, -1) = 0.5, 0.8808, 0.2689; the standard error of 20,000 draws is at most 0.0036.
    torch.testing.assert_close(samples[:, :3].mean(dim=0), torch.tensor([0.5, 0.8808, 0.2689]), rtol=0, atol=0.015)


def test_mode_needs_more_than_the_threshold() -> None:
    logits = torch.tensor([[0.0, 1e-6, -1e-6, 5.0]])
    available = torch.tensor([[True, True, True, False]])
    assert MaskedBernoulli(logits, available).mode().tolist() == [[0.0, 1.0, 0.0, 0.0]]
    # logit(0.9) = ln 9 = 2.1972
    high = MaskedBernoulli(torch.tensor([[2.19, 2.20]]), torch.tensor([[True, True]]), threshold=0.9)
    assert high.mode().tolist() == [[0.0, 1.0]]
    assert threshold_logit(0.5) == 0.0
    assert threshold_logit(0.9) == pytest.approx(math.log(9.0), rel=1e-12)


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4, 60.0]], requires_grad=True)
    distribution = MaskedBernoulli(logits, torch.ones(1, 3, dtype=torch.bool))
    # The unlikely outcome of a logit of 1e4 has log-probability -1e4; a certain bit has entropy 0.
    assert distribution.log_prob(torch.tensor([[0.0, 0.0, 1.0]])).item() == pytest.approx(-1e4, rel=1e-6)
    assert distribution.entropy().item() == pytest.approx(0.0, abs=1e-12)
    (gradient,) = torch.autograd.grad(distribution.entropy().sum(), logits)
    assert torch.isfinite(gradient).all()


def test_thirty_five_even_bits_have_35_ln2_nats() -> None:
    distribution = MaskedBernoulli(torch.zeros(2, 35, dtype=torch.float64), torch.ones(2, 35, dtype=torch.bool))
    assert distribution.entropy().tolist() == pytest.approx([35 * math.log(2)] * 2, rel=1e-12)  # 24.26
    assert distribution.log_prob(torch.zeros(2, 35)).tolist() == pytest.approx([-35 * math.log(2)] * 2, rel=1e-12)


def test_wrong_arguments_are_named() -> None:
    logits = torch.zeros(1, 2)
    with pytest.raises(ValueError, match="boolean mask"):
        MaskedBernoulli(logits, torch.ones(1, 2))
    with pytest.raises(ValueError, match="boolean mask"):
        MaskedBernoulli(logits, torch.ones(1, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="entropy_reduction must be"):
        MaskedBernoulli(logits, torch.ones(1, 2, dtype=torch.bool), entropy_reduction="max")  # type: ignore[arg-type]  # the point of the test
    for threshold in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="threshold must lie"):
            threshold_logit(threshold)
