import torch

from vesper.model.dropout import SeededDropout


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
