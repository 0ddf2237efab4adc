"""Relayed messages fit the door, and a node's own contribution is removed from its sums."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.model.relayed_rows import (
    RelayTransform,
    class_rate,
    excess_of,
    lacks_signal,
    mean_jacobian,
    rms_excess,
)

USERS, SHOPS, SHARE = 900, 60, 0.6
NODES = USERS + SHOPS


def users_and_shops(seed: int = 0) -> tuple[NDArray[np.int64], Tensor]:
    """Edges, where users prefer shops of their own kind, and class rows of users: (NODES, 2)."""
    rng = np.random.default_rng(seed)
    kinds, labels = rng.integers(0, 2, SHOPS), rng.integers(0, 2, USERS)
    visits = rng.integers(0, SHOPS, (USERS, 5))
    for kind in (0, 1):
        own = (labels == kind)[:, None] & (rng.random(visits.shape) < 0.6)
        visits[own] = rng.choice(np.flatnonzero(kinds == kind), int(own.sum()))
    edges = np.column_stack([np.repeat(np.arange(USERS), 5), USERS + visits.ravel()])
    rows = np.zeros((NODES, 2), dtype=np.float32)
    rows[:USERS] = np.where(labels[:, None] == [0, 1], 0.5**0.5, -(0.5**0.5))
    return np.unique(edges, axis=0), torch.from_numpy(rows)


def summed(edges: NDArray[np.int64], rows: Tensor) -> Tensor:
    """Sums over neighbours, without a grid."""
    users, shops = torch.from_numpy(edges).T
    sums = torch.zeros_like(rows).index_add_(0, users, rows[shops])
    return sums.index_add_(0, shops, rows[users])


def relay_of(received: Tensor, length: float) -> RelayTransform:
    rate = class_rate(received)
    jacobian = mean_jacobian(received, rate, length, received[:, 0].clamp(min=0))
    return RelayTransform(rate=rate, length=length, jacobian=jacobian, degree_share=SHARE)


@pytest.mark.parametrize("length", [0.1, 3.0, 1e3])
def test_rows_have_norm_one_at_most(length: float) -> None:
    received = 40 * torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    messages = relay_of(received, length).messages(received)
    assert torch.linalg.vector_norm(messages, dim=1).max() <= 1 + 1e-6
    assert torch.equal(messages[:, 0], torch.full((500,), SHARE))


def test_class_sums_that_only_follow_the_degree_have_no_excess() -> None:
    degrees = torch.arange(1.0, 9.0)[:, None]
    received = torch.cat([degrees, degrees * torch.tensor([-0.9, 0.9])], dim=1)
    assert excess_of(received, class_rate(received)).abs().max() < 1e-5


def test_a_node_without_excess_contributes_its_degree_alone() -> None:
    relay = RelayTransform(
        rate=torch.zeros(2), length=1.0, jacobian=torch.eye(2), degree_share=SHARE
    )
    expected = torch.tensor([[SHARE, 0.0, 0.0]])
    assert torch.equal(relay.messages(torch.tensor([[3.0, 0.0, 0.0]])), expected)


def test_the_own_contribution_is_removed_where_nothing_is_cut() -> None:
    """With an average row in its place, a user receives what removing its own row leaves."""
    edges, rows = users_and_shops()
    messages = torch.cat([torch.ones(NODES, 1), rows], dim=1)
    received = summed(edges, messages)
    relay = relay_of(received, length=1e3)
    back = summed(edges, relay.messages(received))
    messages[0, 1:] = relay.rate
    without = summed(edges, relay.messages(summed(edges, messages)))[0, 1:]
    cleared = relay.remove_own_message(back, rows, noise_std=0.0)[0, 1:]
    assert not torch.allclose(back[0, 1:], without, rtol=1e-2)
    assert torch.allclose(cleared, without, rtol=1e-4)


@pytest.mark.parametrize("num_classes", [2, 4])
def test_random_labels_do_not_return_at_the_usual_length(num_classes: int) -> None:
    """Messages of others contain nothing about a label here: whatever does is the node's own."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, num_classes, USERS)
    visits = rng.integers(0, 5 * SHOPS, (USERS, 6))
    edges = np.column_stack([np.repeat(np.arange(USERS), 6), USERS + visits.ravel()])
    rows = torch.zeros(USERS + 5 * SHOPS, num_classes)
    rows[:USERS] = torch.nn.functional.normalize(
        torch.eye(num_classes)[labels] - 1 / num_classes, dim=1
    )
    messages = torch.cat([torch.ones(len(rows), 1), rows], dim=1)
    received = summed(np.unique(edges, axis=0), messages)
    rate, weights = class_rate(received), received[:, 0].clone()
    weights[:USERS] = 0  # only shops have labelled neighbours
    length = 0.5 * float(rms_excess(received, rate))
    jacobian = mean_jacobian(received, rate, length, weights)
    relay = RelayTransform(rate=rate, length=length, jacobian=jacobian, degree_share=SHARE)
    back = summed(np.unique(edges, axis=0), relay.messages(received))
    cleared = relay.remove_own_message(back, rows, noise_std=0.0)

    def own_in(sums: Tensor) -> float:
        """How much of its own row a user receives, on average."""
        return float((sums[:USERS, 1:] * rows[:USERS]).sum(dim=1).mean())

    assert own_in(back) > 0.2
    assert abs(own_in(cleared)) < 0.5 * own_in(back)


def test_noisy_degrees_are_shrunk_to_their_mean() -> None:
    relay = RelayTransform(
        rate=torch.zeros(2), length=1.0, jacobian=torch.eye(2), degree_share=SHARE
    )
    noise = torch.randn(4000, generator=torch.Generator().manual_seed(0))
    released = torch.zeros(4000, 3)
    released[:, 0] = SHARE * 5 + noise
    own = torch.tensor([[0.5**0.5, -(0.5**0.5)]]).expand(4000, 2)
    cleared = relay.remove_own_message(released, own, noise_std=1.0)
    removed = -cleared[:, 1:] @ own[0] / (1 - SHARE**2) ** 0.5
    assert removed.mean() == pytest.approx(5, rel=0.05)
    assert removed.std() < 0.3, "all degrees are equal: differences are noise"


def test_a_missing_signal_is_detected_and_an_equal_one_is_accepted() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(3000, 3, generator=generator) + torch.tensor([5.0, 0.0, 0.0])
    signal = noise + torch.tensor([0.0, 3.0, -3.0]) * torch.randn(3000, 1, generator=generator)
    assert lacks_signal(signal[:1500], noise[1500:], noise_std=1.0)
    assert not lacks_signal(signal[:1500], signal[1500:], noise_std=1.0)
    assert not lacks_signal(noise[:1500], noise[1500:], noise_std=1.0)


def test_fewer_neighbours_do_not_count_as_a_missing_signal() -> None:
    generator = torch.Generator().manual_seed(0)
    messages = torch.randn(3000, 3, generator=generator)
    messages[:, 0] = 1
    assert not lacks_signal(10 * messages[:1500], 4 * messages[1500:], noise_std=0.0)
