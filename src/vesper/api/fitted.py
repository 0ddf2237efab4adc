"""Fitted model: predictions from both sides of a trained pair, and its evaluation.

The data side embeds nodes, the label side decodes them at the selected stage:

    P(class | node)  = softmax(decoder(embedding)),   calibrated if classes were weighted
    number of a node = sum over bins of P(bin | node) times the value of the bin

Everything that depends on edges was released in training, so predictions cost no budget.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.api.inputs import FitInputs
from vesper.api.node_ids import Nodes, as_label_array, labels_at, node_numbers
from vesper.errors import InputError
from vesper.model.objective import Objective
from vesper.report.contents import Contents, Evaluation
from vesper.session.loop import evaluation_blocks
from vesper.simulation.in_process import TrainedSession


class InProcessPredictor:
    """Predictor that holds both sides of a trained pair in one process."""

    def __init__(self, trained: TrainedSession, objective: Objective) -> None:
        self._data_side, self._label_side = trained.data_side, trained.label_side
        self._stage, self._objective = trained.best_stage, objective

    @torch.no_grad()
    def predict(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return class probabilities (nodes, num_classes), or numbers (nodes,).

        Computed in ascending order of nodes, since the last bits of a matrix product depend on the
        position of a row.
        """
        self._data_side.module.eval()
        self._label_side.module.eval()
        blocks = [self._objective.predict(np.zeros((0, self._objective.outputs)))]
        order = np.argsort(nodes, kind="stable")  # (nodes,)
        for rows in evaluation_blocks(order):
            embeddings = self._data_side.embed(nodes[rows], training=False)  # (B, width, depth)
            scores = self._label_side.decode(embeddings, self._stage)  # (B, outputs)
            blocks.append(self._objective.predict(scores.double().numpy()))
        return np.concatenate(blocks)[np.argsort(order)]


class FittedModel:
    """Trained pair that predicts the nodes of its graph."""

    def __init__(
        self, predictor: InProcessPredictor, inputs: FitInputs, contents: Contents
    ) -> None:
        self._predictor, self._targets, self._distinct = predictor, inputs.targets, inputs.distinct
        self._num_nodes = len(inputs.data.ids)
        validation = inputs.distinct[inputs.labels.labels[inputs.labels.rows("val")]]
        self.contents = replace(
            contents, evaluation=self._evaluate("validation", inputs.validation, validation)
        )

    def predict(self, ids: Any) -> NDArray[np.float64]:
        """Return class probabilities (nodes, num_classes), or numbers (nodes,)."""
        nodes = node_numbers(ids, "ids", num_nodes=self._num_nodes)
        return self._predictor.predict(nodes)

    def evaluate(self, ids: Any, labels: Any) -> Evaluation:
        """Evaluate test nodes; labels are one per id, one per node of the graph, or a mapping."""
        nodes = node_numbers(ids, "ids", num_nodes=self._num_nodes)
        if len(nodes) == 0:
            raise InputError("ids: expected at least one node, got none")
        evaluation = self._evaluate("test", nodes, self._labels(labels, nodes))
        if not math.isfinite(evaluation.metric):
            raise InputError(
                f"labels: expected at least two different values among {len(nodes)} labels, got "
                f"one; no metric can be computed, give more nodes"
            )
        return evaluation

    def _labels(self, labels: Any, nodes: Nodes) -> NDArray[Any]:
        if labels is None:
            raise InputError("labels: expected one label per id, got none; pass labels=...")
        read = self._targets.read
        if not isinstance(labels, Mapping):
            values = as_label_array(labels)
            if values.shape == (len(nodes),):
                return read(values, nodes)
        return labels_at(labels, nodes, read, num_nodes=self._num_nodes)

    def _evaluate(self, split: str, nodes: Nodes, labels: NDArray[Any]) -> Evaluation:
        predicted = self._predictor.predict(nodes)
        return self._targets.evaluate(split, nodes, labels, predicted, self._distinct)
