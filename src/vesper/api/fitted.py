"""What a fit leaves behind: a predictor, and what is known about it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.api.inputs import Holdings
from vesper.api.nodes import Nodes, label_values, labels_at, node_numbers
from vesper.api.predictor import Predictor
from vesper.errors import InputError
from vesper.report.contents import Contents
from vesper.report.judged import Judged


class Fitted:
    """A trained pair that can be asked about the nodes of its graph."""

    def __init__(self, predictor: Predictor, held: Holdings, contents: Contents) -> None:
        self._predictor, self._targets, self._distinct = predictor, held.targets, held.distinct
        self._num_nodes = len(held.data.ids)
        validation = held.distinct[held.labels.labels[held.labels.rows("val")]]
        self.contents = replace(
            contents, judged=self._judged("validation", held.validation, validation)
        )

    def predict(self, ids: Any) -> NDArray[np.float64]:
        """Probabilities of classes (nodes, num_classes), or numbers (nodes,)."""
        nodes = node_numbers(ids, "ids", num_nodes=self._num_nodes)
        return self._predictor.predict(nodes)

    def judge(self, ids: Any, labels: Any) -> Judged:
        """Hold test nodes against their labels: one for each of `ids`, one a node, or a mapping."""
        nodes = node_numbers(ids, "ids", num_nodes=self._num_nodes)
        if len(nodes) == 0:
            raise InputError("ids: expected at least one node, got none")
        judged = self._judged("test", nodes, self._labels(labels, nodes))
        if not math.isfinite(judged.metric):
            raise InputError(
                f"labels: expected at least two different ones among the {len(nodes)} that are "
                f"judged by, got one; no metric can be computed on them"
            )
        return judged

    def _labels(self, labels: Any, nodes: Nodes) -> NDArray[Any]:
        if labels is None:
            raise InputError("labels: expected one for each of the ids, got none; give labels=...")
        read = self._targets.read
        if not isinstance(labels, Mapping):
            values = label_values(labels)
            if values.shape == (len(nodes),):
                return read(values, nodes)
        return labels_at(labels, nodes, read, num_nodes=self._num_nodes)

    def _judged(self, split: str, nodes: Nodes, labels: NDArray[Any]) -> Judged:
        predicted = self._predictor.predict(nodes)
        return self._targets.judged(split, nodes, labels, predicted, self._distinct)
