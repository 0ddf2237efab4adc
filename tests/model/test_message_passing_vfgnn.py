"""VFGNN on sampled subgraphs against the output that its claim is proved for."""

import numpy as np
import pytest
import torch
from torch import nn

from vesper.graph.graph import Graph
from vesper.mechanism.reference.vfgnn_bound import VfgnnOutput
from vesper.mechanism.sampled.layers import Aggregator, LayerNoise, SampledGraph, degree_weights_of
from vesper.model.message_passing import LayerSpec, UnitWeight, VfgnnExtractor

NODES, WIDTH, NORM = 9, 3, 2.0


def extractor_of(num_layers: int, noise: LayerNoise | None) -> VfgnnExtractor:
    layers = LayerSpec(width=WIDTH, num_layers=num_layers, exact=True, noise=noise, seed=0)
    extractor = VfgnnExtractor(nn.Identity(), layers, norm=NORM)
    with torch.no_grad():
        for unit_weight in extractor.unit_weights:
            assert isinstance(unit_weight, UnitWeight)
            unit_weight.weight.copy_(torch.eye(WIDTH))
    return extractor.double()


@pytest.mark.parametrize("aggregator", ["gin", "gcn"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_without_noise_it_is_the_output_of_the_claim(
    aggregator: Aggregator, num_layers: int
) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(NODES, [(int(a), int(b)) for a, b in rng.integers(0, 8, (12, 2))])
    sampled = SampledGraph(
        graph,
        aggregator=aggregator,
        num_layers=num_layers,
        max_degree=NODES,
        min_degree=1,
        seed=0,
    )
    batch = sampled.sample(np.arange(NODES), step=0)
    inputs = rng.normal(size=(NODES, WIDTH))
    weights = degree_weights_of(aggregator, min_degree=1)
    claim = VfgnnOutput(weights, max_degree=NODES, num_layers=num_layers, norm=NORM)
    given = torch.from_numpy(inputs[batch.nodes])
    output = extractor_of(num_layers, None)(given, batch)
    assert output.shape == (NODES, WIDTH, 1)
    expected = torch.from_numpy(claim.embed(graph, inputs))
    torch.testing.assert_close(output[:, :, 0], expected, rtol=1e-5, atol=1e-6)

    noise, same = (LayerNoise(noise_std=0.5, seed=3) for _ in range(2))
    noisy = extractor_of(num_layers, noise)(given, batch)
    torch.testing.assert_close(
        noisy - output, same.perturb(torch.zeros_like(output[:, :, 0]))[:, :, None]
    )
