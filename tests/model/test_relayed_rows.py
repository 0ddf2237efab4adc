"""What is handed on fits the door, and what a node had said itself does not come back to it."""

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
    """Edges; users visit shops of their own kind more often. What users say: (NODES, 2)."""
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


def handing(heard: Tensor, length: float) -> RelayTransform:
    rate = class_rate(heard)
    jacobian = mean_jacobian(heard, rate, length, heard[:, 0].clamp(min=0))
    return RelayTransform(rate=rate, length=length, jacobian=jacobian, degree_share=SHARE)


@pytest.mark.parametrize("length", [0.1, 3.0, 1e3])
def test_rows_have_norm_one_at_most(length: float) -> None:
    heard = 40 * torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    messages = handing(heard, length).messages(heard)
    assert torch.linalg.vector_norm(messages, dim=1).max() <= 1 + 1e-6
    assert torch.equal(messages[:, 0], torch.full((500,), SHARE))


def test_classes_that_only_follow_the_degree_are_nothing_to_hand_on() -> None:
    degrees = torch.arange(1.0, 9.0)[:, None]
    heard = torch.cat([degrees, degrees * torch.tensor([-0.9, 0.9])], dim=1)
    assert excess_of(heard, class_rate(heard)).abs().max() < 1e-5


def test_who_heard_nothing_in_excess_says_its_degree_alone() -> None:
    handed = RelayTransform(
        rate=torch.zeros(2), length=1.0, jacobian=torch.eye(2), degree_share=SHARE
    )
    expected = torch.tensor([[SHARE, 0.0, 0.0]])
    assert torch.equal(handed.messages(torch.tensor([[3.0, 0.0, 0.0]])), expected)


def test_what_a_node_had_said_is_taken_off_where_nothing_is_cut() -> None:
    """One user says what anybody says instead: it hears then what is left when its own is off."""
    edges, rows = users_and_shops()
    said = torch.cat([torch.ones(NODES, 1), rows], dim=1)
    heard = summed(edges, said)
    handed = handing(heard, length=1e3)
    back = summed(edges, handed.messages(heard))
    said[0, 1:] = handed.rate
    without = summed(edges, handed.messages(summed(edges, said)))[0, 1:]
    cleared = handed.remove_own_message(back, rows, noise_std=0.0)[0, 1:]
    assert not torch.allclose(back[0, 1:], without, rtol=1e-2)
    assert torch.allclose(cleared, without, rtol=1e-4)


@pytest.mark.parametrize("num_classes", [2, 4])
def test_labels_at_random_do_not_come_back_at_the_usual_length(num_classes: int) -> None:
    """Nothing that others say tells of a label here: what still does is one's own."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, num_classes, USERS)
    visits = rng.integers(0, 5 * SHOPS, (USERS, 6))
    edges = np.column_stack([np.repeat(np.arange(USERS), 6), USERS + visits.ravel()])
    rows = torch.zeros(USERS + 5 * SHOPS, num_classes)
    rows[:USERS] = torch.nn.functional.normalize(
        torch.eye(num_classes)[labels] - 1 / num_classes, dim=1
    )
    said = torch.cat([torch.ones(len(rows), 1), rows], dim=1)
    heard = summed(np.unique(edges, axis=0), said)
    rate, labelled_nodes = class_rate(heard), heard[:, 0].clone()
    labelled_nodes[:USERS] = 0  # shops do not speak
    length = 0.5 * float(rms_excess(heard, rate))
    jacobian = mean_jacobian(heard, rate, length, labelled_nodes)
    handed = RelayTransform(rate=rate, length=length, jacobian=jacobian, degree_share=SHARE)
    back = summed(np.unique(edges, axis=0), handed.messages(heard))
    cleared = handed.remove_own_message(back, rows, noise_std=0.0)

    def own_in(sums: Tensor) -> float:
        """How much of its own row a user hears, on average."""
        return float((sums[:USERS, 1:] * rows[:USERS]).sum(dim=1).mean())

    assert own_in(back) > 0.2
    assert abs(own_in(cleared)) < 0.5 * own_in(back)


def test_noisy_degrees_are_drawn_to_their_mean() -> None:
    handed = RelayTransform(
        rate=torch.zeros(2), length=1.0, jacobian=torch.eye(2), degree_share=SHARE
    )
    noise = torch.randn(4000, generator=torch.Generator().manual_seed(0))
    released = torch.zeros(4000, 3)
    released[:, 0] = SHARE * 5 + noise
    own = torch.tensor([[0.5**0.5, -(0.5**0.5)]]).expand(4000, 2)
    cleared = handed.remove_own_message(released, own, noise_std=1.0)
    taken = -cleared[:, 1:] @ own[0] / (1 - SHARE**2) ** 0.5
    assert taken.mean() == pytest.approx(5, rel=0.05)
    assert taken.std() < 0.3, "the degrees are all the same: what differs is noise"


def test_another_window_is_noticed_and_an_equal_one_is_not() -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(3000, 3, generator=generator) + torch.tensor([5.0, 0.0, 0.0])
    speaks = noise + torch.tensor([0.0, 3.0, -3.0]) * torch.randn(3000, 1, generator=generator)
    assert lacks_signal(speaks[:1500], noise[1500:], noise_std=1.0)
    assert not lacks_signal(speaks[:1500], speaks[1500:], noise_std=1.0)
    assert not lacks_signal(noise[:1500], noise[1500:], noise_std=1.0)


def test_who_has_fewer_neighbours_is_not_taken_for_another_window() -> None:
    generator = torch.Generator().manual_seed(0)
    said = torch.randn(3000, 3, generator=generator)
    said[:, 0] = 1
    assert not lacks_signal(10 * said[:1500], 4 * said[1500:], noise_std=0.0)
