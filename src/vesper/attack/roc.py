"""Quality of a score, with a confidence interval; and scores from rows of the paper's GIN.

    auc         = P(score of a positive > score of a negative) + P(tie) / 2
    interval    = auc +- z sqrt(var / positives + var' / negatives)      (DeLong et al. 1988)
    tpr at fpr  = share of positives above the threshold that a share fpr of negatives exceeds

var is the variance, over positives, of the share of negatives below each; var' the other way round.

`RowRatios` computes log likelihood ratios of edges from the rows of the paper's GIN during a run:

    row_u = W (h_u + sum over neighbours w of h_w) + noise        layer 1, whenever u is a root

An edge {u, v} adds W h_v to the mean of that row, so with all other edges known

    log ratio += (<row_u - mean without the edge, W h_v> - |W h_v|^2 / 2) / noise_std^2

and the same at v. The current weights are used, which hardly depend on one edge; what the weights
themselves reveal is left out (`vesper audit --target weights` measures it).
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import InputError
from vesper.graph.edges import Pairs, are_edges
from vesper.graph.holdings import DataHoldings
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.message_passing import PerturbedMessagePassing, PmpLayer
from vesper.model.unit_rows import unit_rows
from vesper.party.representation import Nodes, Representation
from vesper.simulation.recording import LayerRows

Scores = NDArray[np.float64]

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Roc:
    """How well a score separates positives from negatives."""

    auc: float
    ci_low: float
    ci_high: float
    tpr: float
    """True-positive rate, by default at 0.1 % false positives."""
    positives: int
    negatives: int


def roc_of(positives: Scores, negatives: Scores, *, fpr: float = 0.001) -> Roc:
    """Evaluate the scores of positives and negatives.

    Raises:
        InputError: there are no positives or no negatives.
    """
    if len(positives) == 0 or len(negatives) == 0:
        raise InputError(
            f"expected positives and negatives to evaluate an attack, got {len(positives)} and "
            f"{len(negatives)}; draw more pairs"
        )
    wins = _below(negatives, positives)  # (positives,)
    losses = 1 - _below(positives, negatives)  # (negatives,)
    auc = float(wins.mean())
    variance = _variance(wins) / len(positives) + _variance(losses) / len(negatives)
    half_width = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * float(np.sqrt(variance))
    return Roc(
        auc=auc,
        ci_low=max(0.0, auc - half_width),
        ci_high=min(1.0, auc + half_width),
        tpr=tpr_at(positives, negatives, fpr=fpr),
        positives=len(positives),
        negatives=len(negatives),
    )


def tpr_at(positives: Scores, negatives: Scores, *, fpr: float) -> float:
    """Share of positives above the lowest threshold that at most `fpr` of negatives exceed."""
    allowed = int(fpr * len(negatives))  # rounded down: with few negatives, none
    threshold = np.sort(negatives)[len(negatives) - 1 - allowed]
    return float((positives > threshold).mean())


def _below(others: Scores, scores: Scores) -> Scores:
    """Share of `others` below each score; ties count half."""
    ordered = np.sort(others)
    left = np.searchsorted(ordered, scores, side="left")
    right = np.searchsorted(ordered, scores, side="right")
    return np.asarray((left + right) / (2 * len(ordered)))


def _variance(shares: Scores) -> float:
    return float(shares.var(ddof=1)) if len(shares) > 1 else 0.25


class RowRatios:
    """Sums log likelihood ratios of pairs during a run; a `RowObserver`.

    Args:
        data: features, and the graph, whose other edges the attacker knows.
        pairs: (num_pairs, 2) pairs whose edges are in question.
        is_gin: whether rows are those of a GIN; other rows are ignored.
    """

    def __init__(self, data: DataHoldings, pairs: Pairs, *, is_gin: bool) -> None:
        self._pairs, self._is_gin = pairs, is_gin
        self._inputs = Inputs(data.features, FeatureScaling(data.features))
        self._place = np.full(data.graph.num_nodes, -1, dtype=np.int64)
        self._signs = np.where(are_edges(data.graph, pairs), 0.5, -0.5)
        self.ratios: NDArray[np.float64] = np.zeros(len(pairs))
        """(num_pairs,) log likelihood ratios so far, of edge to no edge."""
        self.times = 0
        """Number of batches counted so far."""

    @torch.no_grad()
    def __call__(self, inner: Representation, nodes: Nodes, layers: list[LayerRows]) -> None:
        """Add the rows of a batch."""
        module = inner.module
        if not self._is_gin or not isinstance(module, PerturbedMessagePassing):
            return
        assert module.noise is not None
        noise = (layers[0].perturbed - layers[0].means).double().numpy()  # (receivers, width)
        self._place[nodes] = np.arange(len(nodes))
        for side in (0, 1):
            roots = self._place[self._pairs[:, side]]
            in_batch = np.flatnonzero(roots >= 0)
            messages = _messages(module, self._inputs, self._pairs[in_batch, 1 - side])
            # Offset of the row from the midpoint of its means with and without the edge.
            offsets = noise[roots[in_batch]] + self._signs[in_batch, None] * messages
            self.ratios[in_batch] += (offsets * messages).sum(axis=1) / module.noise.noise_std**2
        self._place[nodes] = -1
        self.times += 1


def _messages(module: PerturbedMessagePassing, inputs: Inputs, nodes: Nodes) -> NDArray[np.float64]:
    """W h of each node with the current weights: (nodes, width); the module is unchanged."""
    first = module.layers[0]
    assert isinstance(first, PmpLayer)
    unique, places = np.unique(nodes, return_inverse=True)
    was_training = module.training
    module.eval()  # draws no dropout mask and runs no power iteration
    encodings = unit_rows(module.encoder(inputs.rows(unique)))
    weight: Tensor = first.unit_weight()
    module.train(was_training)
    messages: NDArray[np.float64] = (encodings @ weight.T).double().numpy()
    return messages[places]
