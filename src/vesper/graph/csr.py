"""Build the CSR graph from an edge table in bounded memory: two passes, one array.

    pass 1   degree[v] = number of rows that name v                   (8 bytes per node)
    pass 2   neighbors[cursor[v]++] = u, and vice versa               (4 bytes per directed edge)
    tidy     sort each row, drop repeats and close the gaps, in place

There is never a second copy of the edges: the peak is the finished graph plus one batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.graph import Neighbors, neighbor_dtype
from vesper.graph.ids import Ids, match_ids
from vesper.graph.table_source import Source
from vesper.progress import Progress, no_progress

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class EdgeCounts:
    """Row counts of an edge table: rows = edges + self_loops + merged."""

    rows: int
    edges: int
    self_loops: int
    merged: int


def read_pairs(source: Source, ids: Ids) -> Iterator[Pairs]:
    """Stream the edge table as pairs of node numbers; refuse endpoints that are not nodes.

    The whole table is read before refusing, so that the message can give the number of bad rows.
    """
    source.require("src", "dst")
    unknown: dict[str, int] = {"src": 0, "dst": 0}
    offenders: dict[str, list[Any]] = {"src": [], "dst": []}
    row = 0
    for batch in source.batches(["src", "dst"]):
        ends = []
        for column in ("src", "dst"):
            values = batch.column(column)
            positions = ids.positions(match_ids(values, source, column, like=ids, first_row=row))
            missing = np.flatnonzero(positions < 0)
            unknown[column] += len(missing)
            offenders[column] += [values[int(k)].as_py() for k in missing[:3]]
            ends.append(positions)
        row += len(batch)
        if not any(unknown.values()):
            yield ends[0], ends[1]
    for column, count in unknown.items():
        if count:
            raise InputError(
                f"{source.path}, column {column}: {count} rows name an id that is not a node "
                f"({first_three(offenders[column])}); add these nodes or drop these rows"
            )


def build_csr(
    source: Source, ids: Ids, *, progress: Progress = no_progress
) -> tuple[NDArray[np.int64], Neighbors, EdgeCounts]:
    """Read an edge table into (indptr, neighbors, counts)."""
    from vesper.graph import csr_kernels as kernels
    from vesper.parallel import pool
    from vesper.parallel.pool import threads_allowed

    num_nodes = len(ids)
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    rows = self_loops = 0
    for src, dst in read_pairs(source, ids):
        self_loops += kernels.count_degrees(src, dst, indptr)
        rows += len(src)
        progress("counting edges", rows, 0)
    np.cumsum(indptr, out=indptr)

    neighbors: Neighbors = np.empty(int(indptr[-1]), dtype=neighbor_dtype(num_nodes))
    cursor = indptr[:-1].copy()
    done = 0
    for src, dst in read_pairs(source, ids):
        kernels.scatter(src, dst, cursor, neighbors)
        done += len(src)
        progress("placing edges", done, rows)

    lengths = np.zeros(num_nodes, dtype=np.int64)
    pool.run(
        kernels.sort_rows,
        indptr,
        neighbors,
        lengths,
        num_pieces=-(-num_nodes // kernels.ROWS),
        num_threads=threads_allowed(),
    )
    kernels.move_together(indptr, neighbors, lengths)
    directed = int(lengths.sum())
    np.cumsum(lengths, out=indptr[1:])
    counts = EdgeCounts(
        rows=rows,
        edges=directed // 2,
        self_loops=self_loops,
        merged=rows - self_loops - directed // 2,
    )
    return indptr, neighbors[:directed], counts
