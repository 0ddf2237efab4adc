import pytest
import torch

from vesper.model.network_layers import ENTRIES_PER_PIECE, LEVELS, SeededDropout


def test_preserves_the_mean_repeats_and_does_nothing_in_evaluation() -> None:
    x = torch.ones(1000, 50)
    first, second = SeededDropout(0.3, seed=1), SeededDropout(0.3, seed=1)
    dropped = first(x)
    assert torch.equal(dropped, second(x))
    assert not torch.equal(dropped, first(x))
    assert abs(dropped.mean().item() - 1) < 0.02
    assert abs((dropped == 0).float().mean().item() - 0.3) < 0.02
    first.eval()
    assert torch.equal(first(x), x)
    assert torch.equal(SeededDropout(0.0, seed=1)(x), x)


def test_a_rate_is_rounded_up_to_a_65_536th_and_never_to_1() -> None:
    x = torch.ones(1 << 20)
    for rate, levels in ((1e-9, 1), (0.2, 13108), (0.5, 32768), (1 - 1e-9, LEVELS - 1)):
        drop = SeededDropout(rate, seed=0)
        assert drop.dropped_levels == levels
        actual = levels / LEVELS
        dropped = drop(x)
        nonzero = dropped[dropped != 0]
        assert torch.allclose(nonzero, torch.tensor(1 / (1 - actual)))
        spread = (actual * (1 - actual) / x.numel()) ** 0.5
        assert abs(1 - len(nonzero) / x.numel() - actual) < 5 * spread


def test_any_shape_and_the_gradient_is_the_mask() -> None:
    for shape in ((1,), (3, 5), (2, 3, 7), (0, 4)):
        x = torch.rand(shape, requires_grad=True)
        y = SeededDropout(0.5, seed=3)(x)
        assert y.shape == x.shape
        y.sum().backward()
        assert x.grad is not None
        assert torch.equal(y, x * x.grad)
        assert set(x.grad.flatten().tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_equals_the_product_with_a_mask_over_several_pieces(rate: float) -> None:
    """The slow, obvious reference: the mask stored."""
    x = torch.randn(3, ENTRIES_PER_PIECE - 5, requires_grad=True)
    drop = SeededDropout(rate, seed=7)
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64)
    words.random_(-(2**63), None, generator=torch.Generator().manual_seed(7))
    levels = words.view(torch.int16)[: x.numel()].view(x.shape)
    mask = (levels >= drop.dropped_levels - LEVELS // 2) * (LEVELS / (LEVELS - drop.dropped_levels))
    dropped, weights = drop(x), torch.randn(x.shape)
    assert torch.equal(dropped, x * mask)
    (gradient,) = torch.autograd.grad((dropped * weights).sum(), x)
    assert torch.equal(gradient, weights * mask)


def test_strided_input_and_second_gradients() -> None:
    x = torch.randn(6, 4, requires_grad=True)
    assert torch.equal(
        SeededDropout(0.5, seed=1)(x.T), SeededDropout(0.5, seed=1)(x.T.contiguous())
    )
    weights = torch.randn(6, 4, requires_grad=True)
    dropped = SeededDropout(0.5, seed=1)(x)
    (gradient,) = torch.autograd.grad((dropped * weights).sum(), x, create_graph=True)
    (mask,) = torch.autograd.grad(gradient.sum(), weights)
    assert set(mask.flatten().tolist()) <= {0.0, 2.0}
    assert mask.any()
