import numpy as np
import pytest

from vesper.engine.engine import InProcessEngine, using
from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler
from vesper.mechanism.sampled.layers import SampledGraph
from vesper.mechanism.sampled.shared_draw import draw_for

NUM_NODES = 300


def some_graph() -> Graph:
    """Rows longer and shorter than a word of bits; nodes without neighbours."""
    pairs = np.random.default_rng(0).integers(2, NUM_NODES - 2, (1500, 2)).tolist()
    return Graph.from_edges(NUM_NODES, [*pairs, *((9, other) for other in range(20, 200))])


@pytest.mark.parametrize("num_workers", [1, 3, 40])
@pytest.mark.parametrize("max_degree", [3, 70, 1000])
def test_samples_are_those_of_one_process(num_workers: int, max_degree: int) -> None:
    graph, engine = some_graph(), InProcessEngine(num_workers)
    roots = np.array([250, 9, 0, 31, 299, 120])
    here = Sampler(graph, num_layers=2, max_degree=max_degree, seed=4)
    with using(engine):
        draw = draw_for(graph, max_degree=max_degree)
    there = Sampler(graph, num_layers=2, max_degree=max_degree, seed=4, draw=draw)
    for step in range(3):
        ours, theirs = here.sample(roots, step=step), there.sample(roots, step=step)
        assert np.array_equal(ours.nodes, theirs.nodes)
        for mine, other in zip(ours.layers, theirs.layers, strict=True):
            assert np.array_equal(mine.indptr, other.indptr)
            assert np.array_equal(mine.indices, other.indices)
            assert mine.num_senders == other.num_senders
    assert len({call.worker for call in engine.calls_made}) > min(num_workers, 3) - 1


def test_no_roots_make_no_calls() -> None:
    engine = InProcessEngine(2)
    with using(engine):
        draw = draw_for(some_graph(), max_degree=3)
    sampler = Sampler(some_graph(), num_layers=1, max_degree=3, seed=0, draw=draw)
    assert len(sampler.sample(np.array([], dtype=np.int64), step=0).nodes) == 0
    assert engine.calls_made == []


def test_layers_sample_on_the_current_engine() -> None:
    graph, engine = some_graph(), InProcessEngine(2)
    with using(engine):
        batches = SampledGraph(
            graph, aggregator="gin", num_layers=2, max_degree=5, min_degree=0, seed=1
        )
    alone = SampledGraph(graph, aggregator="gin", num_layers=2, max_degree=5, min_degree=0, seed=1)
    roots = np.array([5, 100])
    nodes = batches.sample(roots, step=0).nodes
    assert engine.calls_made
    assert np.array_equal(nodes, alone.sample(roots, step=0).nodes)


def test_without_remote_workers_rows_are_drawn_locally() -> None:
    assert draw_for(some_graph(), max_degree=3) is None
    with using(InProcessEngine(2, local=True)):
        assert draw_for(some_graph(), max_degree=3) is None
