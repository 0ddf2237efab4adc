import numpy as np
import torch
from torch.nn.functional import embedding_bag

from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import sample
from vesper.graph.sampling.subgraph import graph_degrees


def random_graph(num_nodes: int, num_pairs: int) -> Graph:
    pairs = np.random.default_rng(0).integers(0, num_nodes, (num_pairs, 2))
    return Graph.from_edges(num_nodes, [(int(a), int(b)) for a, b in pairs])


def test_layers_are_ready_for_embedding_bag_in_the_order_of_the_forward_pass() -> None:
    graph = random_graph(60, 300)
    adjacency = torch.zeros(60, 60, dtype=torch.float64)
    for v in range(60):
        adjacency[v, graph.neighbors[graph.indptr[v] : graph.indptr[v + 1]].astype(np.int64)] = 1
    encodings = torch.rand(60, 4, dtype=torch.float64)
    whole = encodings
    for _ in range(3):
        whole = adjacency @ whole + whole

    roots = np.array([7, 3, 50])
    subgraph = sample(graph, roots, num_layers=3, max_degree=60, seed=0, step=0)
    h = encodings[torch.from_numpy(subgraph.nodes)]
    for block in subgraph.layers:
        indices, offsets = torch.from_numpy(block.indices), torch.from_numpy(block.indptr)
        sums = embedding_bag(indices, h, offsets, mode="sum", include_last_offset=True)
        h = sums + h[: block.num_receivers]

    torch.testing.assert_close(h, whole[torch.from_numpy(roots)])


def test_sampled_degrees_and_true_degrees() -> None:
    graph = random_graph(60, 300)
    subgraph = sample(graph, np.arange(10), num_layers=2, max_degree=4, seed=0, step=0)
    true = graph_degrees(graph, subgraph.nodes)
    np.testing.assert_array_equal(true, np.diff(graph.indptr)[subgraph.nodes])
    for block in subgraph.layers:
        np.testing.assert_array_equal(block.degrees, np.minimum(true[: block.num_receivers], 4))
    assert subgraph.num_sampled_edges == sum(int(block.degrees.sum()) for block in subgraph.layers)
