"""Operator norms: exact is exact, one power iteration is an estimate from below."""

import torch

from vesper.model.encoders import initialize
from vesper.model.message_passing import UnitWeight


def unit_weight(*, exact: bool, seed: int = 0) -> UnitWeight:
    module = UnitWeight(12, 8, exact=exact, seed=seed)
    initialize(module, seed)
    return module


def norm_of(weight: torch.Tensor) -> float:
    return float(torch.linalg.matrix_norm(weight.detach().double(), ord=2))


def test_exact_is_one() -> None:
    assert abs(norm_of(unit_weight(exact=True)()) - 1) < 1e-6


def test_one_iteration_is_above_one_and_settles() -> None:
    module = unit_weight(exact=False)
    norms = [norm_of(module()) for _ in range(200)]
    assert norms[0] > 1.02
    assert all(norm > 1 - 1e-6 for norm in norms)
    assert abs(norms[-1] - 1) < 1e-3


def test_evaluation_does_not_iterate() -> None:
    module = unit_weight(exact=False).eval()
    assert torch.equal(module(), module())
    module.train()
    assert not torch.equal(module(), module())


def test_gradients_include_the_norm() -> None:
    """Scaling the weight changes nothing, so its gradient is orthogonal to it."""
    module = unit_weight(exact=True)
    torch.autograd.backward([(module() * torch.arange(96.0).reshape(8, 12)).sum()])
    gradient = module.weight.grad
    assert gradient is not None
    along = (gradient * module.weight.detach()).sum()
    assert abs(float(along)) < 1e-4 * float(gradient.norm() * module.weight.detach().norm())


def test_without_a_bound_the_weight_is_used_as_it_is() -> None:
    module = UnitWeight(12, 8, exact=False, seed=0, bounded=False)
    initialize(module, 0)
    assert torch.equal(module(), module.weight)
    assert abs(norm_of(module()) - 1) > 0.01
