"""The sparse product and its gradient, against dense matrices and finite differences."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.mechanism.sampled.link_sums import Links, links_of, offsets_of, weighted_sum


def random_links(seed: int, *, receivers: int, senders: int, weighted: bool) -> Links:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=receivers)  # empty rows too
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    indices = rng.integers(0, senders, size=indptr[-1]).astype(np.int32)
    weights = rng.normal(size=indptr[-1]).astype(np.float32) if weighted else None
    return Links(indptr, indices, weights, senders)


def dense(links: Links) -> torch.Tensor:
    matrix = torch.zeros(len(links.indptr) - 1, links.num_senders, dtype=torch.float64)
    for receiver in range(len(matrix)):
        for link in range(links.indptr[receiver], links.indptr[receiver + 1]):
            weight = 1.0 if links.weights is None else float(links.weights[link])
            matrix[receiver, links.indices[link]] += weight
    return matrix


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_is_a_matrix_product(seed: int, receivers: int, senders: int, weighted: bool) -> None:
    links = random_links(seed, receivers=receivers, senders=senders, weighted=weighted)
    rows = torch.from_numpy(np.random.default_rng(seed).normal(size=(senders, 3)))
    torch.testing.assert_close(weighted_sum(rows, links), dense(links) @ rows)
    torch.testing.assert_close(dense(links.transposed()), dense(links).T)


@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_is_that_of_finite_differences(weighted: bool) -> None:
    links = random_links(1, receivers=4, senders=6, weighted=weighted)
    rows = torch.from_numpy(np.random.default_rng(2).normal(size=(6, 3))).requires_grad_()
    assert torch.autograd.gradcheck(lambda values: weighted_sum(values, links), (rows,))


def test_gradient_repeats_bit_for_bit() -> None:
    links = random_links(3, receivers=500, senders=40, weighted=True)
    gradients = []
    for _ in range(2):
        rows = torch.linspace(-1, 1, 40 * 8).reshape(40, 8).requires_grad_()
        torch.autograd.backward([weighted_sum(rows, links).square().sum()])
        gradients.append(rows.grad)
    assert gradients[0] is not None
    assert gradients[1] is not None
    assert torch.equal(gradients[0], gradients[1])


def test_too_many_links_are_refused() -> None:
    with pytest.raises(InputError, match=r"fewer than 2\^31 links, got 2,147,483,657"):
        offsets_of(np.array([2**31 - 1, 10]))


def test_links_of_a_matrix_and_into_some_receivers_only() -> None:
    rng = np.random.default_rng(4)
    matrix = (rng.standard_normal((9, 5)) * (rng.random((9, 5)) < 0.4)).astype(np.float32)
    matrix[3] = 0
    links = links_of(iter([matrix[:4], matrix[4:]]), num_senders=5)
    rows = torch.from_numpy(rng.standard_normal((5, 2)).astype(np.float32))
    assert links.num_receivers == 9
    assert torch.allclose(links.apply(rows), torch.from_numpy(matrix) @ rows, atol=1e-6)
    some = np.array([8, 3, 0, 8])
    expected = torch.from_numpy(matrix[some]) @ rows
    assert torch.allclose(links.for_receivers(some).apply(rows), expected, atol=1e-6)
    assert links.for_receivers(np.arange(0)).num_receivers == 0
