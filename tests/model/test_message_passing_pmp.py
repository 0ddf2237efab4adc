"""Perturbed message passing against Algorithms 1 and 2 written with dense matrices."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import LinearAggregation, degrees_of
from vesper.mechanism.sampled.layers import (
    Aggregator,
    LayerNoise,
    SampledBatch,
    SampledGraph,
    degree_weights_of,
)
from vesper.model.message_passing import LayerSpec, PerturbedMessagePassing, PmpLayer
from vesper.model.unit_rows import unit_rows

WIDTH, NODES, MIN_DEGREE = 4, 12, 3
AGGREGATORS: list[Aggregator] = ["gin", "gcn", "truncated-gcn"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    return Graph.from_edges(NODES, [(int(a), int(b)) for a, b in rng.integers(0, 11, (22, 2))])


def batch_of(
    graph: Graph, aggregator: Aggregator, roots: list[int], num_layers: int
) -> SampledBatch:
    sampled = SampledGraph(
        graph,
        aggregator=aggregator,
        num_layers=num_layers,
        max_degree=NODES,
        min_degree=MIN_DEGREE,
        seed=0,
    )
    return sampled.sample(np.array(roots), step=0)


def extractor_of(
    aggregator: Aggregator, num_layers: int, noise: LayerNoise | None = None
) -> PerturbedMessagePassing:
    layers = LayerSpec(width=WIDTH, num_layers=num_layers, exact=True, noise=noise, seed=0)
    truncated = aggregator == "truncated-gcn"
    return PerturbedMessagePassing(nn.Identity(), layers, truncated=truncated).double()


def layers_of(extractor: PerturbedMessagePassing) -> list[PmpLayer]:
    return [layer for layer in extractor.layers if isinstance(layer, PmpLayer)]


def by_the_book(
    graph: Graph, aggregator: Aggregator, extractor: PerturbedMessagePassing, inputs: Tensor
) -> Tensor:
    """All nodes at once, from the dense matrix: (num_nodes, width, L)."""
    aggregation = degree_weights_of(aggregator, min_degree=MIN_DEGREE)
    matrix = torch.from_numpy(LinearAggregation.operator(aggregation, graph))
    h = inputs / inputs.norm(dim=1, keepdim=True)
    low = degrees_of(graph) < MIN_DEGREE
    layers = []
    for layer in layers_of(extractor):
        value = matrix @ h @ layer.unit_weight().T
        if layer.branch is not None:
            value[low] = h[low] @ layer.branch.weight.T + layer.branch.bias
        value = torch.relu(value)
        norms = value.norm(dim=1, keepdim=True)
        h = torch.where(norms > 0, value / norms, 0.0)
        layers.append(h)
    return torch.stack(layers, dim=2)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_with_all_neighbours_it_is_the_algorithm(
    graph: Graph, aggregator: Aggregator, num_layers: int
) -> None:
    inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(NODES, WIDTH)))
    roots = [5, 0, 11]  # 11 has no neighbour
    batch = batch_of(graph, aggregator, roots, num_layers)
    extractor = extractor_of(aggregator, num_layers)
    embeddings = extractor(inputs[torch.from_numpy(batch.nodes)], batch)
    expected = by_the_book(graph, aggregator, extractor, inputs)[roots]
    assert embeddings.shape == (3, WIDTH, num_layers)
    torch.testing.assert_close(embeddings, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_gradients_are_those_of_finite_differences(graph: Graph, aggregator: Aggregator) -> None:
    """For the inputs and for every weight, through two sampled layers."""
    batch = batch_of(graph, aggregator, [5, 0, 2], 2)
    extractor = extractor_of(aggregator, 2)
    inputs = torch.from_numpy(np.random.default_rng(2).normal(size=(len(batch.nodes), WIDTH)))
    inputs.requires_grad_()
    names = [name for name, _ in extractor.named_parameters()]

    def embed(given: Tensor, *weights: Tensor) -> Tensor:
        weighted = dict(zip(names, weights, strict=True))
        embeddings: Tensor = torch.func.functional_call(extractor, weighted, (given, batch))
        return embeddings

    assert torch.autograd.gradcheck(embed, (inputs, *extractor.parameters()))


def test_noise_comes_after_the_map_and_before_the_nonlinearity(graph: Graph) -> None:
    """Same noise by hand: h = normalize(ReLU(W gathered + noise))."""
    batch = batch_of(graph, "gin", [5, 0, 2], 1)
    inputs = torch.from_numpy(np.random.default_rng(3).normal(size=(len(batch.nodes), WIDTH)))
    noisy = extractor_of("gin", 1, LayerNoise(noise_std=0.7, seed=4))
    (layer,) = layers_of(noisy)
    value = layer.pre_activation(unit_rows(inputs), batch.layers[0])
    by_hand = unit_rows(torch.relu(LayerNoise(noise_std=0.7, seed=4).perturb(value)))
    assert torch.equal(noisy(inputs, batch)[:, :, 0], by_hand)


def test_rows_of_the_branch_are_perturbed_too() -> None:
    """A graph without edges: every row is the branch's, and noise moves each of them."""
    graph = Graph.from_edges(NODES, [])
    batch = batch_of(graph, "truncated-gcn", list(range(NODES)), 1)
    inputs = torch.ones(NODES, WIDTH, dtype=torch.float64)
    noise = LayerNoise(noise_std=0.1, seed=0)
    quiet, noisy = extractor_of("truncated-gcn", 1), extractor_of("truncated-gcn", 1, noise)
    for extractor in (quiet, noisy):
        (layer,) = layers_of(extractor)
        assert layer.branch is not None
        nn.init.constant_(layer.branch.bias, 1.0)  # so that ReLU passes it
    still, moved = quiet(inputs, batch), noisy(inputs, batch)  # (NODES, WIDTH, 1)
    assert torch.equal(still, still[:1].expand_as(still))
    assert (moved != still).flatten(1).any(dim=1).all()
    assert (moved[1:] != moved[:-1]).flatten(1).any(dim=1).all()
