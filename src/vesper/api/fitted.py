"""What a fit leaves behind: a predictor, and what is known about it."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.api.inputs import Holdings
from vesper.api.nodes import Nodes, as_classes, labels_at, node_numbers
from vesper.api.predictor import Predictor
from vesper.errors import InputError, first_three
from vesper.graph.foreign import as_array
from vesper.report.contents import Contents, Judged


class Fitted:
    """A trained pair that can be asked about the nodes of its graph."""

    def __init__(self, predictor: Predictor, held: Holdings, contents: Contents) -> None:
        self._predictor, self._classes = predictor, held.classes
        self._num_nodes = len(held.data.ids)
        validation = held.labels.labels[held.labels.rows("val")]
        self.contents = replace(
            contents, judged=self._judged("validation", held.validation, validation)
        )

    def probabilities(self, ids: Any) -> NDArray[np.float64]:
        """Of each class: (nodes, num_classes)."""
        nodes = node_numbers(ids, "ids", num_nodes=self._num_nodes)
        return self._predictor.probabilities(nodes)

    def judge(self, ids: Any, labels: Any) -> Judged:
        """Hold test nodes against their labels: one for each of `ids`, one a node, or a mapping."""
        nodes = node_numbers(ids, "ids", num_nodes=self._num_nodes)
        if len(nodes) == 0:
            raise InputError("ids: expected at least one node, got none")
        return self._judged("test", nodes, self._codes(self._labels(labels, nodes), nodes))

    def _labels(self, labels: Any, nodes: Nodes) -> NDArray[Any]:
        if labels is None:
            raise InputError("labels: expected one for each of the ids, got none; give labels=...")
        values = None if hasattr(labels, "keys") else as_array(labels, "labels")
        if values is not None and values.shape == (len(nodes),):
            return as_classes(values, nodes)
        return labels_at(labels, nodes, num_nodes=self._num_nodes)

    def _codes(self, values: NDArray[Any], nodes: Nodes) -> NDArray[np.int64]:
        known = np.isin(values, self._classes)
        if not known.all():
            raise InputError(
                f"labels: {int((~known).sum())} labels are of classes that training did not see "
                f"({first_three(f'{v} of node {n}' for v, n in _zipped(values, nodes, ~known))}); "
                f"leave these nodes out"
            )
        return np.searchsorted(self._classes, values).astype(np.int64)

    def _judged(self, split: str, nodes: Nodes, codes: NDArray[np.int64]) -> Judged:
        return Judged(
            split=split,
            classes=tuple(map(str, self._classes.tolist())),
            labels=codes,
            probabilities=self.probabilities(nodes),
        )


def _zipped(values: NDArray[Any], nodes: Nodes, where: NDArray[np.bool_]) -> list[tuple[Any, int]]:
    return list(zip(values[where].tolist(), nodes[where].tolist(), strict=True))
