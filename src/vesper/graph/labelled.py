"""Which nodes the rows of a label table are about. No edge is read."""

import numpy as np
from numpy.typing import NDArray

from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import LabelHoldings


def labelled_nodes(data: DataHoldings, labels: LabelHoldings) -> NDArray[np.int64]:
    """(num_labels,) node of each row; ids meet as text, as they do in a run."""
    texts = tuple(map(str, labels.ids.values.to_pylist()))
    return data.ids.find_texts(texts)
