"""Fitted model: predictions from both sides of a trained pair, and its evaluation.

The data side embeds nodes, the label side decodes them at the selected stage:

    P(class | node)  = softmax(decoder(embedding)),   calibrated if classes were weighted
    number of a node = sum over bins of P(bin | node) times the value of the bin

Everything that depends on edges was released before, so predictions cost no budget.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.api.node_ids import Nodes
from vesper.api.node_names import NodeNames
from vesper.api.targets import Targets
from vesper.api.trained_model import TrainedModel
from vesper.errors import InputError
from vesper.report.contents import Contents, Evaluation
from vesper.session.loop import evaluation_blocks


@torch.no_grad()
def predict_nodes(model: TrainedModel, nodes: Nodes) -> NDArray[np.float64]:
    """Return class probabilities (nodes, num_classes), or numbers (nodes,).

    Computed in ascending order of nodes, since the last bits of a matrix product depend on the
    position of a row.
    """
    model.data_side.module.eval()
    model.label_side.module.eval()
    calibration = model.calibration
    blocks = [calibration.predict(np.zeros((0, len(calibration.constants))))]
    order = np.argsort(nodes, kind="stable")  # (nodes,)
    for rows in evaluation_blocks(order):
        embeddings = model.data_side.embed(nodes[rows], training=False)  # (B, width, depth)
        scores = model.label_side.decode(embeddings, model.stage)  # (B, outputs)
        blocks.append(calibration.predict(scores.double().numpy()))
    predicted = np.concatenate(blocks)[np.argsort(order)]
    return predicted if calibration.classes else predicted[:, 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedModel:
    """Trained pair that predicts the nodes of one graph."""

    model: TrainedModel
    targets: Targets
    distinct: NDArray[Any]
    """Distinct labels of training."""
    contents: Contents

    @property
    def names(self) -> NodeNames:
        """How users name nodes."""
        return NodeNames(self.model.num_nodes, self.model.ids)

    def predict(self, ids: Any) -> NDArray[np.float64]:
        """Return class probabilities (nodes, num_classes), or numbers (nodes,)."""
        return predict_nodes(self.model, self.names.queried(ids, self.model.features))

    def evaluate(self, ids: Any, labels: Any) -> Evaluation:
        """Evaluate test nodes; labels are one per id, one per node of the graph, or a mapping."""
        ids, labels = self.names.test_nodes(ids, labels)
        nodes = self.names.numbers(ids, "ids")
        if len(nodes) == 0:
            raise InputError("ids: expected at least one node, got none")
        if labels is None:
            raise InputError("labels: expected one label per id, got none; pass labels=...")
        truth = self.names.labels_of(labels, nodes, self.targets.read, may_be_per_id=True)
        evaluation = self.evaluate_nodes("test", nodes, truth)
        if not math.isfinite(evaluation.metric):
            raise InputError(
                f"labels: expected at least two different values among {len(nodes)} labels, got "
                f"one; no metric can be computed, give more nodes"
            )
        return evaluation

    def evaluate_nodes(self, split: str, nodes: Nodes, labels: NDArray[Any]) -> Evaluation:
        """Compare predictions for some nodes with their labels."""
        predicted = predict_nodes(self.model, nodes)
        return self.targets.evaluate(split, nodes, labels, predicted, self.distinct)

    def with_validation(self, nodes: Nodes, labels: NDArray[Any]) -> "FittedModel":
        """Return the same model whose contents have an evaluation on validation nodes."""
        evaluation = self.evaluate_nodes("validation", nodes, labels)
        return replace(self, contents=replace(self.contents, evaluation=evaluation))
