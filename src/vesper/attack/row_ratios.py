"""What the rows of the paper's GIN say about pairs of nodes, while a run goes on.

    row_u = W (h_u + sum over neighbours w of h_w) + noise        layer 1, whenever u is a root

An edge {u, v} adds W h_v to the mean of that row, so with all other edges known

    log ratio += (<row_u - mean without the edge, W h_v> - |W h_v|^2 / 2) / noise_std^2

and the same at v. Weights are those of the moment, which hardly depend on one edge; what they
betray by themselves is left out (`vesper audit --probe weights` counts it).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.graph.holdings import DataHoldings
from vesper.graph.pairs import Pairs, are_edges
from vesper.model.pmp import PerturbedMessagePassing, PmpLayer
from vesper.model.rows import normalized
from vesper.model.scaling import Inputs, Scaling
from vesper.party.representation import Nodes, Representation
from vesper.run.shown import Layer


class RowRatios:
    """Adds up log likelihood ratios of pairs; a `Watch`.

    Args:
        data: the graph, for what is known of it, and the features.
        pairs: whose edges are asked for.
        is_gin: whether rows are those of GIN; of others nothing is added up.
    """

    def __init__(self, data: DataHoldings, pairs: Pairs, *, is_gin: bool) -> None:
        self._pairs, self._is_gin = pairs, is_gin
        self._inputs = Inputs(data.features, Scaling(data.features))
        self._place = np.full(data.graph.num_nodes, -1, dtype=np.int64)
        self._signs = np.where(are_edges(data.graph, pairs), 0.5, -0.5)
        self.ratios: NDArray[np.float64] = np.zeros(len(pairs))
        self.times = 0
        """How many batches were looked at."""

    @torch.no_grad()
    def __call__(self, inner: Representation, nodes: Nodes, layers: list[Layer]) -> None:
        """Look at the rows of a batch."""
        module = inner.module
        if not self._is_gin or not isinstance(module, PerturbedMessagePassing):
            return
        assert module.noise is not None
        noise = (layers[0].perturbed - layers[0].means).double().numpy()  # (receivers, width)
        self._place[nodes] = np.arange(len(nodes))
        for side in (0, 1):
            roots = self._place[self._pairs[:, side]]
            asked = np.flatnonzero(roots >= 0)
            heard = _said(module, self._inputs, self._pairs[asked, 1 - side])  # (asked, width)
            # Against the mean without the edge the noise is larger by what the edge has added.
            apart = noise[roots[asked]] + self._signs[asked, None] * heard
            self.ratios[asked] += (apart * heard).sum(axis=1) / module.noise.noise_std**2
        self._place[nodes] = -1
        self.times += 1


def _said(module: PerturbedMessagePassing, inputs: Inputs, nodes: Nodes) -> NDArray[np.float64]:
    """W h of each node, as it is now; nothing in the module changes."""
    first = module.layers[0]
    assert isinstance(first, PmpLayer)
    different, places = np.unique(nodes, return_inverse=True)
    was_training = module.training
    module.eval()  # no mask is drawn and no power iteration made
    encodings = normalized(module.encoder(inputs.of(different)))
    weight: Tensor = first.unit_weight()
    module.train(was_training)
    said: NDArray[np.float64] = (encodings @ weight.T).double().numpy()
    return said[places]
