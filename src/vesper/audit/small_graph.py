"""A small graph to audit on, in memory: a ring in which everybody knows a few around, two classes.

Nodes are numbered around the ring; node v knows v +- 1 .. v +- reach. Features say little about
classes. The first nodes are for training, then validation, then test.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from vesper.graph.csr import EdgeCounts
from vesper.graph.graph import Graph
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings

REACH = 2
NUM_FEATURES = 4


def small_graph(
    *, num_train: int, num_val: int = 8, num_test: int = 8, seed: int = 0
) -> tuple[DataHoldings, LabelHoldings]:
    """Make what both parties hold."""
    rng = np.random.default_rng(seed)
    num_nodes = num_train + num_val + num_test
    around = [(v, (v + step) % num_nodes) for v in range(num_nodes) for step in range(1, REACH + 1)]
    labels = np.arange(num_nodes) % 2
    features = rng.normal(size=(num_nodes, NUM_FEATURES)) + 0.5 * labels[:, None]
    data = DataHoldings(
        ids=Ids(pa.array(np.arange(num_nodes))),
        features=features.astype(np.float32),
        graph=Graph.from_edges(num_nodes, around),
        counts=EdgeCounts(rows=len(around), edges=len(around), self_loops=0, merged=0),
    )
    held = LabelHoldings(
        path=Path("small graph"),
        ids=Ids(pa.array(np.arange(num_nodes))),
        classes=(0, 1),
        labels=labels.astype(np.int64),
        splits=np.repeat(np.array([0, 1, 2], dtype=np.int8), [num_train, num_val, num_test]),
    )
    return data, held
