"""Errata 4 and 8: what party A's update reveals, and what one power iteration does not bound."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.gin import GinAggregation

WIDTH, LEARNING_RATE = 8, 1e-3
ROOTS = [0, 1]  # party B knows them; 5 is the node whose edge to 0 it wants to know
GRAPH = Graph.from_edges(6, [(0, 2), (1, 3), (0, 5), (3, 4)])


def encodings() -> torch.Tensor:
    """Unit rows; only node 5 has the last coordinate."""
    rows = torch.rand((6, WIDTH), generator=torch.Generator().manual_seed(0)) + 0.1
    rows[:, -1] = 0.0
    rows[5] = F.one_hot(torch.tensor(WIDTH - 1), WIDTH)
    return F.normalize(rows.double(), dim=1)


def one_step(graph: Graph, *, noise_std: float, seed: int) -> torch.Tensor:
    """How W changes in one step of Algorithm 3 with Adam: GIN, one layer, linear decoder at B."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn((WIDTH, WIDTH), generator=generator, dtype=torch.float64)
    weight = torch.nn.Parameter(weight / torch.linalg.matrix_norm(weight, 2))
    start = weight.detach().clone()
    aggregated = torch.from_numpy(GinAggregation().operator(graph)) @ encodings() @ weight.T
    noise = torch.randn(aggregated.shape, generator=generator, dtype=torch.float64)
    embeddings = F.normalize(torch.relu(aggregated + noise_std * noise), dim=1)[ROOTS]
    received = embeddings.detach().requires_grad_()  # at party B
    decoder = torch.randn((WIDTH, 2), generator=generator, dtype=torch.float64)
    loss = F.cross_entropy(received @ decoder, torch.tensor([0, 1]))
    torch.autograd.backward([loss])
    optimizer = torch.optim.Adam([weight], lr=LEARNING_RATE)
    assert received.grad is not None  # to party A, which multiplies it with un-noised aggregates
    torch.autograd.backward([embeddings], [received.grad])
    optimizer.step()
    return weight.detach() - start


@pytest.mark.parametrize("noise_std", [1.0, 72.5, 1e6])
def test_4_the_returned_weights_reveal_an_edge_with_certainty(noise_std: float) -> None:
    without = toggle_edge(GRAPH, (0, 5))
    for seed in range(25):
        seen = one_step(GRAPH, noise_std=noise_std, seed=seed)[:, -1]
        unseen = one_step(without, noise_std=noise_std, seed=seed)[:, -1]
        assert seen.abs().max() > 0
        assert torch.equal(unseen, torch.zeros(WIDTH, dtype=torch.float64))


def test_4_the_first_step_of_adam_is_the_sign_of_the_gradient() -> None:
    moved = one_step(GRAPH, noise_std=1.0, seed=3)[:, -1].abs()
    moved = moved[moved > 0]
    assert len(moved) > 0
    assert moved.tolist() == pytest.approx([LEARNING_RATE] * len(moved), rel=1e-3)


def ratios(*, width: int, steps: int) -> list[float]:
    """True operator norm over the estimate by power iteration, for 20 Gaussian matrices."""
    result = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weight = rng.standard_normal((width, width))
        left = rng.standard_normal(width)
        for _ in range(steps):
            right = weight.T @ left
            right /= np.linalg.norm(right)
            left = weight @ right
            estimate = float(np.linalg.norm(left))
            left /= estimate
        result.append(float(np.linalg.norm(weight, 2)) / estimate)
    return result


def test_8_power_iteration_estimates_from_below() -> None:
    for width in (2, 16, 128):
        for steps in (1, 5):
            assert min(ratios(width=width, steps=steps)) >= 1 - 1e-12
    assert float(np.mean(ratios(width=128, steps=1))) == pytest.approx(1.38, abs=0.02)
    assert float(np.mean(ratios(width=128, steps=5))) == pytest.approx(1.06, abs=0.01)
