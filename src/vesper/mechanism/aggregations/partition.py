"""Noisy rows of a whole graph, computed by the workers of an engine, each for some receivers.

    worker w:   rows cuts[w] .. cuts[w + 1] - 1 of the graph, and messages and tables of all nodes
    a call:     a block of these rows, computed exactly and finished with the noise of these rows

Rows are integers and noise is a function of the release and the row (`RowNoise`), so the result is
the same bit for bit whichever worker computes a block. A call that is repeated because its worker
died has the same messages and the same bits, and returns the same rows: nothing is drawn twice.
Blocks are counted as they arrive, since rows that no worker has finished have no noise.
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
from vesper.errors import VesperError, first_three
from vesper.graph.graph import Graph, Neighbors
from vesper.mechanism.aggregations.aggregation import Aggregation, Nodes, refuse_inexact
from vesper.mechanism.aggregations.grid import Messages, padded_rows
from vesper.mechanism.aggregations.row_noise import RowNoise
from vesper.mechanism.noise.noise_source import NoiseSource

ENTRIES_PER_BLOCK = 1 << 22
"""16 MiB of results: few calls, and few results that wait to be fetched."""

ROW_COST = 8
"""Cost of a row in edges: its noise, and its transfer back."""


@dataclass(frozen=True)
class Shard:
    """Rows of the graph for one worker, as handles to send.

    Args:
        rows: which rows of the graph.
        indptr: (rows + 1,) where each row starts, the first at 0.
        neighbors: the neighbours in these rows.
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
    """Aggregate and finish rows: (num_receivers, width).

    Releases to all nodes are computed by the current engine, if there is one; releases to some
    nodes in this process.
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
    """Aggregate and finish all rows on the engine's workers: (num_nodes, width).

    Raises:
        VesperError: the engine did not return each block exactly once. Rows of a block that never
            arrived would be zeros or old memory, without noise.
    """
    refuse_inexact(graph, messages)
    kernel, width = aggregation.row_kernel(graph, messages), messages.shape[1]
    tables = [engine.share(each) for each in (padded_rows(messages), *kernel.sender_tables)]
    blocks: list[tuple[range, OutputSlice | None]] = []
    calls: list[Call] = []
    with SharedOutput((graph.num_nodes, width), np.float32) as output:
        for worker, shard in enumerate(shards_of(engine, graph)):
            for rows in _blocks(shard.rows, ENTRIES_PER_BLOCK // max(1, width)):
                local_rows = range(rows.start - shard.rows.start, rows.stop - shard.rows.start)
                shard_rows = shard.indptr, shard.neighbors, local_rows
                place = output.slice_for(engine, worker, rows.start)
                own = (each[rows.start : rows.stop] for each in kernel.own)
                inputs = (width, *tables, *own, *kernel.scalars)
                blocks.append((rows, place))
                calls.append(
                    Call(
                        worker,
                        noisy_block,
                        (*shard_rows, row_noise, rows, place, kernel.function, *inputs),
                    )
                )
        missing = set(range(len(calls)))
        for number, block in engine.results(calls):
            if number not in missing:
                raise _wrong_blocks(f"block {number} arrived twice or was never asked for")
            missing.remove(number)
            rows, place = blocks[number]
            if block is not None and block.shape == (len(rows), width):
                output.rows[rows.start : rows.stop] = block
            elif block is not None or place is None:
                raise _wrong_blocks(f"block {number} arrived without its rows")
        if missing:
            raise _wrong_blocks(f"{len(missing)} never arrived ({first_three(sorted(missing))})")
    released: NDArray[np.float32] = output.rows
    return released


def _wrong_blocks(found: str) -> VesperError:
    return VesperError(
        f"engine: expected each block of rows exactly once, but {found}; nothing was released. "
        f"Restart the engine, then continue with --resume, at no further cost"
    )


def noisy_block(
    indptr: NDArray[np.int64],
    neighbors: Any,
    local_rows: range,
    row_noise: RowNoise,
    rows: range,
    place: OutputSlice | None,
    function: Callable[..., NDArray[np.int32]],
    *inputs: Any,
) -> NDArray[np.float32] | None:
    """Compute and finish a block of rows, at the worker; None: they were written to `place`.

    Args:
        indptr: row starts of the worker's shard.
        neighbors: neighbours of the worker's shard, to be opened with `as_array`.
        local_rows: the block, counted from the shard's first row.
        row_noise: noise of the release.
        rows: the block, as rows of the release.
        place: where to write the rows; None: return them.
        function: computes the rows, as in `RowKernel`.
        inputs: width, messages of all nodes, and whatever else `function` reads.
    """
    shard_neighbors: Neighbors = as_array(neighbors)
    bounds = np.asarray(indptr)[local_rows.start : local_rows.stop + 1]
    values = function(bounds[:-1], bounds[1:], shard_neighbors, *inputs)
    finished = row_noise.finish_rows(values, first_row=rows.start)
    return None if write_output(finished, place) else finished


def cuts_of(graph: Graph, parts: int) -> list[int]:
    """Row numbers that cut the graph into parts of about equal work, from 0 to num_nodes."""
    nodes = range(graph.num_nodes + 1)

    def work_before(row: int) -> int:
        return int(graph.indptr[row]) + ROW_COST * row

    whole = work_before(graph.num_nodes)
    inner = [bisect_left(nodes, whole * k // parts, key=work_before) for k in range(1, parts)]
    return [0, *inner, graph.num_nodes]


_shards: WeakKeyDictionary[Engine, WeakKeyDictionary[Graph, list[Shard]]] = WeakKeyDictionary()


def shards_of(engine: Engine, graph: Graph) -> list[Shard]:
    """Shards of the graph, one per worker; shared with the workers once, for all releases."""
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
