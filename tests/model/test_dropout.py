import torch

from vesper.model.dropout import LEVELS, SeededDropout


def test_keeps_the_mean_repeats_and_rests_in_evaluation() -> None:
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


def test_a_rate_is_the_next_65_536th_and_never_all() -> None:
    x = torch.ones(1 << 20)
    for rate, levels in ((1e-9, 1), (0.2, 13108), (0.5, 32768), (1 - 1e-9, LEVELS - 1)):
        drop = SeededDropout(rate, seed=0)
        assert drop.dropped == levels
        actual = levels / LEVELS
        dropped = drop(x)
        kept = dropped[dropped != 0]
        assert torch.allclose(kept, torch.tensor(1 / (1 - actual)))
        spread = (actual * (1 - actual) / x.numel()) ** 0.5
        assert abs(1 - len(kept) / x.numel() - actual) < 5 * spread


def test_any_shape_and_the_gradient_is_the_mask() -> None:
    for shape in ((1,), (3, 5), (2, 3, 7), (0, 4)):
        x = torch.rand(shape, requires_grad=True)
        y = SeededDropout(0.5, seed=3)(x)
        assert y.shape == x.shape
        y.sum().backward()
        assert x.grad is not None
        assert torch.equal(y, x * x.grad)
        assert set(x.grad.flatten().tolist()) <= {0.0, 2.0}
