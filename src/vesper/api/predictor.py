"""A trained pair, asked about nodes: embed at the data side, decode at the settled stage.

    P(class | node) = softmax(decoder(embedding)),   calibrated where classes were weighted
    number of node  = sum over bins of that times what the bin stands for

Everything that depends on edges was released in training, so asking again costs no budget.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.model.objective import Objective
from vesper.run.itinerary import blocks
from vesper.run.pair import Trained


class Predictor:
    """Both sides of a trained pair, in one process."""

    def __init__(self, trained: Trained, objective: Objective) -> None:
        self._data_side, self._label_side = trained.data_side, trained.label_side
        self._stage, self._objective = trained.best_stage, objective

    @torch.no_grad()
    def predict(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probabilities of classes (nodes, num_classes), or numbers (nodes,).

        Computed in ascending order: last bits of a product depend on a row's place in it.
        """
        self._data_side.module.eval()
        self._label_side.module.eval()
        said = [self._objective.predict(np.zeros((0, self._objective.outputs)))]
        order = np.argsort(nodes, kind="stable")  # (nodes,)
        for rows in blocks(order):
            embeddings = self._data_side.embed(nodes[rows], training=False)  # (B, width, depth)
            scores = self._label_side.decode(embeddings, self._stage)  # (B, outputs)
            said.append(self._objective.predict(scores.double().numpy()))
        return np.concatenate(said)[np.argsort(order)]
