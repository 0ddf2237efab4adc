"""Noise of the paper's plan has the given size and comes from its seed."""

import pytest
import torch
from scipy import stats

from vesper.errors import InputError
from vesper.mechanism.sampled.layers import LayerNoise


@pytest.mark.parametrize("noise_std", [0.0, -1.0, float("inf"), float("nan")])
def test_refuses_zero_noise(noise_std: float) -> None:
    with pytest.raises(InputError, match="noise_std"):
        LayerNoise(noise_std=noise_std, seed=0)


def test_has_the_given_size() -> None:
    added = LayerNoise(noise_std=2.5, seed=0).perturb(torch.zeros(200, 100)).flatten().numpy()
    assert stats.kstest(added, "norm", args=(0, 2.5)).pvalue > 1e-3
    for wrong in (0.9, 1.1):  # the test can fail
        assert stats.kstest(added, "norm", args=(0, 2.5 * wrong)).pvalue < 1e-6


def test_depends_on_the_seed_and_never_repeats() -> None:
    rows = torch.ones(3, 2)
    one, same, other = (LayerNoise(noise_std=1.0, seed=seed) for seed in (1, 1, 2))
    first = one.perturb(rows)
    assert torch.equal(first, same.perturb(rows))
    assert not torch.equal(first, one.perturb(rows))
    assert not torch.equal(first, other.perturb(rows))


def test_gradients_pass_unchanged() -> None:
    rows = torch.ones(3, 2, requires_grad=True)
    torch.autograd.backward([LayerNoise(noise_std=1.0, seed=0).perturb(rows).sum()])
    assert rows.grad is not None
    assert torch.equal(rows.grad, torch.ones(3, 2))
