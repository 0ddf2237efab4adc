"""Noisy rows of a whole graph, shared out by receiver over the workers of an engine.

    worker w:   rows cuts[w] .. cuts[w + 1] - 1 of the graph, and messages and tables of all nodes
    a call:     a block of these rows, made exactly and finished with the noise of these very rows

Rows are whole numbers and noise is a function of the release and the row (`RowNoise`), so the result
is the same bit for bit whoever makes which block. A call that is repeated, because its worker died,
has the same messages and the same bits, and gives the same rows: nothing is drawn twice.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from vesper.engine.array_rows import as_array, rows_for
from vesper.engine.engine import Call, Engine, current_engine
from vesper.engine.shared_output import OutputSlice, SharedOutput, write_output
from vesper.graph.graph import Graph, Neighbors
from vesper.mechanism.aggregations.aggregation import Aggregation, Nodes, refuse_inexact
from vesper.mechanism.aggregations.grid import Messages, padded_rows
from vesper.mechanism.aggregations.row_noise import RowNoise
from vesper.mechanism.noise.noise_source import NoiseSource

ENTRIES_PER_BLOCK = 1 << 22
"""16 MiB of results: few calls, and little that waits to be fetched."""

ROW_COST = 8
"""A row costs as much as so many edges: its noise, and its way back."""


@dataclass(frozen=True)
class Shard:
    """Rows of the graph for one worker; two handles to send.

    Args:
        rows: which ones.
        indptr: (rows + 1,) where each row starts, the first at 0.
        neighbors: of these rows.
    """

    rows: range
    indptr: Any
    neighbors: Any


def noisy_rows(
    aggregation: Aggregation,
    graph: Graph,
    messages: Messages,
    receivers: Nodes | None,
    *,
    noise: NoiseSource,
    noise_std: float,
    row_norm: float | None = None,
) -> NDArray[np.float32]:
    """Aggregate and finish: (num_receivers, width).

    Rows of all nodes are made by the engine in use, if there is one; those of some nodes here.
    """
    num_receivers = graph.num_nodes if receivers is None else len(receivers)
    row_noise = RowNoise(
        bits=noise.span(num_receivers * messages.shape[1]),
        scale=aggregation.steps * noise_std,
        steps=aggregation.steps,
        row_norm=row_norm,
    )
    engine = current_engine()
    if engine is not None and receivers is None:
        return partitioned_rows(engine, aggregation, graph, messages, row_noise)
    return row_noise.finish_rows(aggregation.aggregate(graph, messages, receivers))


def partitioned_rows(
    engine: Engine, aggregation: Aggregation, graph: Graph, messages: Messages, row_noise: RowNoise
) -> NDArray[np.float32]:
    """Aggregate and finish all rows on the engine's workers: (num_nodes, width)."""
    refuse_inexact(graph, messages)
    kernel, width = aggregation.row_kernel(graph, messages), messages.shape[1]
    tables = [engine.share(each) for each in (padded_rows(messages), *kernel.sender_tables)]
    blocks, calls = [], []
    with SharedOutput((graph.num_nodes, width), np.float32) as landing:
        for worker, shard in enumerate(shards_of(engine, graph)):
            for rows in _blocks(shard.rows, ENTRIES_PER_BLOCK // max(1, width)):
                local_rows = range(rows.start - shard.rows.start, rows.stop - shard.rows.start)
                held = shard.indptr, shard.neighbors, local_rows
                slice_for = landing.slice_for(engine, worker, rows.start)
                own = (each[rows.start : rows.stop] for each in kernel.own)
                read = (width, *tables, *own, *kernel.scalars)
                blocks.append(rows)
                calls.append(
                    Call(
                        worker,
                        noisy_block,
                        (*held, row_noise, rows, slice_for, kernel.function, *read),
                    )
                )
        for number, sent in engine.results(calls):
            if sent is not None:
                landing.rows[blocks[number].start : blocks[number].stop] = sent
    released: NDArray[np.float32] = landing.rows
    return released


def noisy_block(
    indptr: NDArray[np.int64],
    neighbors: Any,
    local_rows: range,
    row_noise: RowNoise,
    rows: range,
    place: OutputSlice | None,
    make: Callable[..., NDArray[np.int32]],
    *read: Any,
) -> NDArray[np.float32] | None:
    """Make and finish a block of rows, at the worker; None: they have landed.

    Args:
        indptr: of the worker's shard.
        neighbors: of the worker's shard, to be opened.
        local_rows: the block, counted from the shard's first row.
        row_noise: of the release.
        rows: the block, as rows of the release.
        place: where to put them.
        make: how rows are made.
        read: width, messages of all nodes, and what else `make` reads.
    """
    held: Neighbors = as_array(neighbors)
    bounds = np.asarray(indptr)[local_rows.start : local_rows.stop + 1]
    values = make(bounds[:-1], bounds[1:], held, *read)
    finished = row_noise.finish_rows(values, first_row=rows.start)
    return None if write_output(finished, place) else finished


def cuts_of(graph: Graph, parts: int) -> list[int]:
    """Where to cut the rows so that all parts are about the same work; first 0, last num_nodes."""
    nodes = range(graph.num_nodes + 1)

    def work_before(row: int) -> int:
        return int(graph.indptr[row]) + ROW_COST * row

    whole = work_before(graph.num_nodes)
    inner = [bisect_left(nodes, whole * k // parts, key=work_before) for k in range(1, parts)]
    return [0, *inner, graph.num_nodes]


_shards: WeakKeyDictionary[Engine, WeakKeyDictionary[Graph, list[Shard]]] = WeakKeyDictionary()


def shards_of(engine: Engine, graph: Graph) -> list[Shard]:
    """Rows of the graph at the workers: sent once, for all releases."""
    graphs = _shards.setdefault(engine, WeakKeyDictionary())
    if graph not in graphs:
        cuts = cuts_of(graph, engine.num_workers)
        graphs[graph] = [
            _shard(engine, worker, graph, range(first, last))
            for worker, (first, last) in enumerate(pairwise(cuts))
        ]
    return graphs[graph]


def _shard(engine: Engine, worker: int, graph: Graph, rows: range) -> Shard:
    start, stop = int(graph.indptr[rows.start]), int(graph.indptr[rows.stop])
    return Shard(
        rows=rows,
        indptr=engine.share(np.asarray(graph.indptr[rows.start : rows.stop + 1]) - start),
        neighbors=rows_for(engine, worker, graph.neighbors, start, stop),
    )


def _blocks(rows: range, size: int) -> Iterator[range]:
    for start in range(rows.start, rows.stop, max(1, size)):
        yield range(start, min(start + max(1, size), rows.stop))
