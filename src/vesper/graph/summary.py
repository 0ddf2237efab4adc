"""Summary of party folders that `vesper data check` prints for their owner.

Degrees are private: a summary is printed at the data party and never sent.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vesper.errors import InputError, first_three
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.graph.labels import SPLITS, LabelHoldings


@dataclass(frozen=True)
class Summary:
    """Counts of one pair of party folders.

    `edges` counts undirected edges; `directed_edges` is the count in a graph library that stores
    both directions. `bytes_per_directed_edge` is the neighbour array alone; row pointers add 8
    bytes per node, and `graph_bytes` is the total.
    """

    nodes: int
    edges: int
    directed_edges: int
    features: int
    classes: int | None
    labels: int | None
    train: int | None
    val: int | None
    test: int | None
    isolated: int
    mean_degree: float
    max_degree: int
    bytes_per_directed_edge: float
    graph_bytes: int
    edge_rows: int
    self_loops_dropped: int
    duplicates_merged: int


def summarize(data: DataHoldings, labels: LabelHoldings | None) -> Summary:
    """Check that both folders fit together and count their contents."""
    if labels is not None:
        refuse_unknown_labels(data.ids, labels)
    graph = data.graph
    degrees = np.diff(graph.indptr)  # (num_nodes,)
    directed = 2 * graph.num_edges
    rows = {split: len(labels.rows(split)) if labels else None for split in SPLITS}
    return Summary(
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        directed_edges=directed,
        features=data.features.shape[1],
        classes=len(labels.classes) if labels else None,
        labels=len(labels.ids) if labels else None,
        train=rows["train"],
        val=rows["val"],
        test=rows["test"],
        isolated=int((degrees == 0).sum()),
        mean_degree=directed / graph.num_nodes,
        max_degree=int(degrees.max()),
        bytes_per_directed_edge=graph.neighbors.nbytes / directed if directed else 0.0,
        graph_bytes=graph.nbytes,
        edge_rows=data.counts.rows,
        self_loops_dropped=data.counts.self_loops,
        duplicates_merged=data.counts.merged,
    )


def refuse_unknown_labels(ids: Ids, labels: LabelHoldings) -> None:
    """Refuse labels for ids that are not nodes; as in a run, ids are compared as text."""
    wanted = labels.ids.values
    if ids.are_integers == labels.ids.are_integers:
        positions = ids.positions(wanted)
    else:
        positions = ids.positions_of_texts(wanted.cast(pa.large_string()))
    unknown = np.flatnonzero(positions < 0)
    if len(unknown):
        raise InputError(
            f"{labels.path}, column id: {len(unknown)} rows label an id that is not a node "
            f"({first_three(labels.ids.take(unknown[:3]))}); drop these rows or add the nodes"
        )
