"""Sums of the probe are averaged with those of the first hop, weighted by precision."""

import numpy as np
import pytest
import torch

from vesper.method.certified.probe import NodeRoles, ProbeRelease
from vesper.method.certified.probe_size import PartLengths
from vesper.method.certified.probe_sums import (
    ReceivedSums,
    received_in_hop,
    received_in_probe,
)
from vesper.party.representation import NO_NODES


def test_probe_and_hop_are_averaged_by_precision() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(20_000, 3)) * 3
    lengths, noise_std = np.array([0.6, 0.8, 0.8]), 1.0
    stds = np.array([2.0, 1.0, 1.0])
    first = ReceivedSums(
        torch.from_numpy(truth + stds * rng.normal(size=truth.shape)),
        torch.from_numpy(stds),
        torch.zeros(len(truth)),
    )
    released = torch.from_numpy(truth * lengths + noise_std * rng.normal(size=truth.shape))
    assert torch.equal(first.combined_with(released, degree_share=0.6, noise_std=0.0), released)
    joined = first.combined_with(released, degree_share=0.6, noise_std=noise_std).numpy()
    error = (joined - truth * lengths).std(axis=0)
    best = (1 / (1 / noise_std**2 + 1 / (stds * lengths) ** 2)) ** 0.5
    assert error == pytest.approx(best, rel=0.03)


def test_sums_of_a_hop_are_scaled_to_rows_of_norm_one() -> None:
    released = torch.tensor([[0.6, 0.8, 0.0], [1.2, 0.8, 0.8]])
    received = received_in_hop(released, degree_share=0.6)
    assert received.sums.numpy() == pytest.approx(np.array([[1, 1, 0], [2, 1, 1]]), abs=1e-6)
    assert received.labelled_neighbors.tolist() == pytest.approx([1, 2])


@pytest.mark.parametrize(("noise_std", "column"), [(1e-3, 0), (1e3, 1)])
def test_labelled_neighbours_are_counted_where_noise_allows(noise_std: float, column: int) -> None:
    lengths = PartLengths.for_share(0.1)
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)  # reach, degree, two classes
    release = ProbeRelease(
        rows=rows,
        roles=NodeRoles(np.arange(1), torch.eye(2)[:1], NO_NODES),
        own_components=np.zeros((1, 0), dtype=np.float32),
        lengths=lengths,
        noise_std=noise_std,
    )
    received = received_in_probe(release)
    expected = rows[:, 0] / lengths.label_reach if column == 0 else rows[:, 1]
    assert received.labelled_neighbors.numpy() == pytest.approx(expected)
    assert received.sums.numpy()[:, 0] == pytest.approx(rows[:, 1] / lengths.degree)
    assert received.sums.numpy()[:, 1:] == pytest.approx(rows[:, 2:] / lengths.classes)
