"""Label rows are matched to nodes, whichever kind of ids either side has."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from vesper.graph.csr import EdgeCounts
from vesper.graph.graph import Graph
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings, nodes_of_label_rows


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string()])
def test_rows_are_matched_as_text(kind: pa.DataType) -> None:
    data = DataHoldings(
        ids=Ids(pa.array([3, 5, 8]).cast(kind)),
        features=np.zeros((3, 1), dtype=np.float32),
        graph=Graph.from_edges(3, []),
        counts=EdgeCounts(rows=0, edges=0, self_loops=0, merged=0),
    )
    labels = LabelHoldings(
        path=Path("labels"),
        ids=Ids(pa.array([8, 3])),
        classes=(0, 1),
        labels=np.array([0, 1]),
        splits=np.array([0, 1], dtype=np.int8),
    )
    assert nodes_of_label_rows(data, labels).tolist() == [2, 0]
