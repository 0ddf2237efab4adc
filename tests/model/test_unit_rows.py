"""Row normalisation against that of the mechanism, and its gradient."""

import numpy as np
import torch

from vesper.mechanism.reference.linear import normalize_rows
from vesper.model.unit_rows import rectified_unit_rows, unit_rows


def test_is_the_normalisation_of_the_mechanism() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 4))
    rows[2] = 0
    torch.testing.assert_close(
        unit_rows(torch.from_numpy(rows)), torch.from_numpy(normalize_rows(rows))
    )


def test_gradient_is_that_of_finite_differences() -> None:
    rows = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 3))).requires_grad_()
    assert torch.autograd.gradcheck(unit_rows, (rows,))


def test_a_zero_row_stays_zero_and_its_gradient_finite() -> None:
    rows = torch.zeros(2, 3, requires_grad=True)
    out = unit_rows(rows)
    torch.autograd.backward([out.sum()])
    assert torch.equal(out, torch.zeros(2, 3))
    assert rows.grad is not None
    assert torch.equal(rows.grad, torch.ones(2, 3))


def test_rectified_is_the_normalised_positive_part() -> None:
    rows = torch.from_numpy(np.random.default_rng(2).normal(size=(3000, 5)).astype(np.float32))
    rows[7] = -1.0  # no positive part
    torch.testing.assert_close(rectified_unit_rows(rows), unit_rows(torch.relu(rows)))
    assert torch.equal(rectified_unit_rows(rows)[7], torch.zeros(5))


def test_gradient_of_rectified_is_that_of_finite_differences() -> None:
    rows = torch.from_numpy(np.random.default_rng(3).normal(size=(5, 6))).requires_grad_()
    assert torch.autograd.gradcheck(rectified_unit_rows, (rows,))


def test_a_row_with_nothing_above_zero_has_no_gradient() -> None:
    rows = torch.full((2, 3), -1.0, requires_grad=True)
    torch.autograd.backward([rectified_unit_rows(rows).sum()])
    assert rows.grad is not None
    assert torch.equal(rows.grad, torch.zeros(2, 3))


def test_nan_is_not_hidden() -> None:
    rows = torch.tensor([[1.0, float("nan")], [3.0, 4.0]])
    for function in (unit_rows, rectified_unit_rows):
        assert torch.isnan(function(rows)[0]).all()
        torch.testing.assert_close(function(rows)[1], torch.tensor([0.6, 0.8]))


def test_threads_do_not_change_a_bit() -> None:
    rows = torch.randn(5000, 7, generator=torch.Generator().manual_seed(0))
    threads = torch.get_num_threads()
    results = []
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            inputs = rows.clone().requires_grad_()
            out = rectified_unit_rows(inputs)
            torch.autograd.backward([out], [rows])
            assert inputs.grad is not None
            results.append((out.detach(), inputs.grad))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
