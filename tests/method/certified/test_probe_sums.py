"""What was heard before the first hop is averaged into it once, or handed on in it."""

from typing import Any

import numpy as np
import pytest
import torch

from vesper.errors import VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.door import OpenDoor
from vesper.method.certified.probe_sums import PendingProbeSums, ProbeSums


def test_both_are_averaged_by_how_exact_they_are() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(20_000, 3)) * 3
    lengths, noise_std = np.array([0.6, 0.8, 0.8]), 1.0
    stds = np.array([2.0, 1.0, 1.0])
    first = ProbeSums(
        torch.from_numpy(truth + stds * rng.normal(size=truth.shape)),
        torch.from_numpy(stds),
        torch.zeros(len(truth)),
    )
    released = torch.from_numpy(truth * lengths + noise_std * rng.normal(size=truth.shape))
    assert torch.equal(first.combined_with(released, degree_share=0.6, noise_std=0.0), released)
    joined = first.combined_with(released, degree_share=0.6, noise_std=noise_std).numpy()
    left = (joined - truth * lengths).std(axis=0)
    best = (1 / (1 / noise_std**2 + 1 / (stds * lengths) ** 2)) ** 0.5
    assert left == pytest.approx(best, rel=0.03)


def test_it_is_used_once() -> None:
    hearing = PendingProbeSums()
    released = torch.ones(4, 3)
    hearing.put(ProbeSums(torch.zeros(4, 3), torch.ones(3), torch.zeros(4)))
    before = hearing.has_sums
    first = hearing.combined_with(released.clone(), degree_share=0.6, noise_std=1.0)
    assert not torch.equal(first, released)
    assert (before, hearing.has_sums) == (True, False)
    assert torch.equal(hearing.combined_with(released, degree_share=0.6, noise_std=1.0), released)
    with pytest.raises(VesperError, match="nothing was heard"):
        assert hearing.sums is not None


def test_who_listens_hears_rows_of_length_one() -> None:
    graph = Graph.from_edges(3, np.array([[0, 1], [1, 2]]))
    messages = torch.tensor([[0.6, 0.8, 0.0], [0.6, 0.0, 0.8], [0.6, 0.8, 0.0]])
    hearing, charged = PendingProbeSums(), []

    class Noted(OpenDoor):
        def release(self, messages: Any, *, noise_std: float, **how: Any) -> Any:
            charged.append(noise_std)
            return super().release(messages, noise_std=0.0, **how)

    residuals = hearing.release_relay_input(Noted(graph), messages, degree_share=0.6, noise_std=2.0)
    assert hearing.sums.numpy() == pytest.approx(
        np.array([[1, 0, 1], [2, 2, 0], [1, 0, 1]]), abs=0.03
    )
    assert 1 / charged[0] ** 2 + 1 / residuals**2 <= 1 / 2.0**2
