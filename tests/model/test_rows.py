"""Row normalisation against the one of the mechanism, and its gradient."""

import numpy as np
import torch

from vesper.mechanism.normalize import normalize_rows
from vesper.model.rows import normalized


def test_is_the_normalisation_of_the_mechanism() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 4))
    rows[2] = 0
    torch.testing.assert_close(
        normalized(torch.from_numpy(rows)), torch.from_numpy(normalize_rows(rows))
    )


def test_gradient_is_that_of_finite_differences() -> None:
    rows = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 3))).requires_grad_()
    assert torch.autograd.gradcheck(normalized, (rows,))


def test_a_zero_row_stays_zero_and_its_gradient_finite() -> None:
    rows = torch.zeros(2, 3, requires_grad=True)
    out = normalized(rows)
    torch.autograd.backward([out.sum()])
    assert torch.equal(out, torch.zeros(2, 3))
    assert rows.grad is not None
    assert torch.equal(rows.grad, torch.ones(2, 3))
