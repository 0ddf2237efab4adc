import numpy as np
import pytest

from vesper.graph.graph import Graph
from vesper.graph.sampling.expand import hop_key
from vesper.graph.sampling.sampler import sample
from vesper.graph.sampling.subgraph import sample_rows

NUM_NODES, CUT = 120, 45


def some_graph() -> Graph:
    pairs = np.random.default_rng(0).integers(0, NUM_NODES, (900, 2)).tolist()
    return Graph.from_edges(NUM_NODES, [*pairs, *((70, other) for other in range(69))])


@pytest.mark.parametrize("max_degree", [2, 66, 500])
def test_a_part_draws_the_same_rows_as_the_whole_graph(max_degree: int) -> None:
    graph, receivers = some_graph(), np.array([70, 45, 119, 81])
    start = int(graph.indptr[CUT])
    indptr, drawn = sample_rows(
        graph.indptr[CUT:] - start,
        graph.neighbors[start:],
        CUT,
        receivers,
        max_degree=max_degree,
        key=hop_key(3, 8, 1),
        num_nodes=NUM_NODES,
    )
    whole = sample(graph, receivers, num_layers=1, max_degree=max_degree, seed=3, step=8)
    [block] = whole.layers
    assert indptr.tolist() == block.indptr.tolist()
    assert drawn.tolist() == whole.nodes[block.indices].tolist()
    assert len(drawn) > 0
