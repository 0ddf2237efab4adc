"""Rows of a sample drawn by the workers of an engine, each for its part of the graph.

    a hop:   receivers go to the workers that have their rows; drawn neighbours come back

What is drawn for a node is a function of seed, step, hop and node, so the sample is the same
wherever it is drawn. Each hop takes a round trip to the workers, ten times as long as drawing in
this process. That pays off only for graphs beyond this machine's memory, so it is not used when
all workers are on this machine.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.engine.array_rows import Array, MappedRows, as_array
from vesper.engine.engine import Call, Engine, current_engine
from vesper.graph.graph import Graph, Neighbors
from vesper.graph.sampling.sampler import DrawRows
from vesper.graph.sampling.subgraph import sample_rows
from vesper.mechanism.aggregations.partition import shards_of

Nodes = NDArray[np.int64]


def draw_for(graph: Graph, *, max_degree: int) -> DrawRows | None:
    """Return a function that draws rows on the current engine; None: draw in this process."""
    engine = current_engine()
    if engine is None or all(engine.is_local(worker) for worker in range(engine.num_workers)):
        return None
    return lambda receivers, key: shared_draw(engine, graph, receivers, key, max_degree=max_degree)


def shared_draw(
    engine: Engine, graph: Graph, receivers: Nodes, key: np.uint64, *, max_degree: int
) -> tuple[Nodes, Neighbors]:
    """Draw a row for each receiver; returns indptr of the sample and the drawn node numbers."""
    shards = shards_of(engine, graph)
    ends = [shard.rows.stop for shard in shards]
    owners = np.searchsorted(ends, receivers, side="right")  # (num_receivers,)
    calls, receivers_of_call = [], []
    for worker in np.unique(owners):
        shard, positions = shards[worker], np.flatnonzero(owners == worker)
        most = min(max_degree, graph.num_nodes)
        request = (shard.rows.start, receivers[positions], most, key, graph.num_nodes)
        calls.append(Call(int(worker), draw_at_worker, (shard.indptr, shard.neighbors, *request)))
        receivers_of_call.append(positions)
    lengths = np.zeros(len(receivers), dtype=np.int64)
    results = dict(engine.results(calls))
    for number, (indptr, _) in results.items():
        lengths[receivers_of_call[number]] = np.diff(indptr)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    sampled_neighbors = np.empty(int(offsets[-1]), dtype=graph.neighbors.dtype)
    for number, (indptr, part) in results.items():
        positions = receivers_of_call[number]
        shifts = np.repeat(offsets[positions] - indptr[:-1], lengths[positions])  # (len(part),)
        sampled_neighbors[np.arange(len(part)) + shifts] = part
    return offsets, sampled_neighbors


def draw_at_worker(
    indptr: Nodes,
    neighbors: MappedRows | Array,
    first: int,
    receivers: Nodes,
    max_degree: int,
    key: np.uint64,
    num_nodes: int,
) -> tuple[Nodes, Neighbors]:
    """Draw the rows that one worker holds."""
    return sample_rows(
        np.asarray(indptr),
        as_array(neighbors),
        first,
        np.asarray(receivers),
        max_degree=max_degree,
        key=key,
        num_nodes=num_nodes,
    )
