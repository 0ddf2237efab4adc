"""Layer normalisation: as in PyTorch, and the same for any number of threads."""

import pytest
import torch

from vesper.model.network_layers import RowNorm


def made() -> RowNorm:
    norm = RowNorm(33)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2, generator=torch.Generator().manual_seed(1))
        norm.bias.uniform_(-1, 1, generator=torch.Generator().manual_seed(2))
    return norm


def rows() -> torch.Tensor:
    return torch.randn(1025, 33, generator=torch.Generator().manual_seed(0))


def test_values_are_those_of_a_layer_norm() -> None:
    norm = made()
    theirs = torch.nn.LayerNorm(33)
    theirs.load_state_dict(norm.state_dict())
    assert torch.allclose(norm(rows()), theirs(rows()), atol=1e-6)


def test_gradients_do_not_depend_on_threads() -> None:
    before, gradients = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            norm, inputs = made(), rows().requires_grad_()
            torch.autograd.backward([norm(inputs).square().sin().sum()])
            gradients.append([inputs.grad, norm.weight.grad, norm.bias.grad])
    finally:
        torch.set_num_threads(before)
    for others in gradients[1:]:
        for ours, theirs in zip(gradients[0], others, strict=True):
            assert ours is not None
            assert theirs is not None
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("shape", [(4, 33), (2, 4, 33)])
def test_gradients_are_those_of_finite_differences(shape: tuple[int, ...]) -> None:
    inputs = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    assert torch.autograd.gradcheck(made().double(), (inputs.requires_grad_(),))
