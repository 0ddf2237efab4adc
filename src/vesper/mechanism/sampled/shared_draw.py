"""Rows of a sample, drawn by the workers of an engine: each draws those of its part of the graph.

    a hop:   receivers go to the workers that have their rows; drawn neighbours come back

What is drawn for a node is a function of seed, step, hop and node, so it is the same whoever draws.
It takes a way to the workers and back a hop, ten times as long as drawing here: that pays only with
memory that this machine has not, so workers of this machine alone are not asked.
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
    """Give a way to draw rows of the graph on the engine in use; None: draw them here."""
    engine = current_engine()
    if engine is None or all(engine.is_local(worker) for worker in range(engine.num_workers)):
        return None
    return lambda receivers, key: shared_draw(engine, graph, receivers, key, max_degree=max_degree)


def shared_draw(
    engine: Engine, graph: Graph, receivers: Nodes, key: np.uint64, *, max_degree: int
) -> tuple[Nodes, Neighbors]:
    """Draw a row of each receiver: indptr of the sample, and drawn node numbers."""
    shards = shards_of(engine, graph)
    ends = [shard.rows.stop for shard in shards]
    owners = np.searchsorted(ends, receivers, side="right")  # (num_receivers,)
    calls, receivers_of_call = [], []
    for worker in np.unique(owners):
        shard, mine = shards[worker], np.flatnonzero(owners == worker)
        most = min(max_degree, graph.num_nodes)
        of_call = (shard.rows.start, receivers[mine], most, key, graph.num_nodes)
        calls.append(Call(int(worker), draw_at_worker, (shard.indptr, shard.neighbors, *of_call)))
        receivers_of_call.append(mine)
    lengths = np.zeros(len(receivers), dtype=np.int64)
    results = dict(engine.results(calls))
    for number, (indptr, _) in results.items():
        lengths[receivers_of_call[number]] = np.diff(indptr)
    whole = np.concatenate([[0], np.cumsum(lengths)])
    sampled_neighbors = np.empty(int(whole[-1]), dtype=graph.neighbors.dtype)
    for number, (indptr, part) in results.items():
        mine = receivers_of_call[number]
        moved = np.repeat(whole[mine] - indptr[:-1], lengths[mine])  # (drawn of the worker,)
        sampled_neighbors[np.arange(len(part)) + moved] = part
    return whole, sampled_neighbors


def draw_at_worker(
    indptr: Nodes,
    neighbors: MappedRows | Array,
    first: int,
    receivers: Nodes,
    max_degree: int,
    key: np.uint64,
    num_nodes: int,
) -> tuple[Nodes, Neighbors]:
    """Draw the rows that one worker has."""
    return sample_rows(
        np.asarray(indptr),
        as_array(neighbors),
        first,
        np.asarray(receivers),
        max_degree=max_degree,
        key=key,
        num_nodes=num_nodes,
    )
