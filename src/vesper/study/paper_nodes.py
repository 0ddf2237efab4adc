"""Nodes of the paper's two dense sets, as far as limits on accuracy depend on them (erratum 16).

| quantity | value | source |
| --- | --- | --- |
| degrees of nodes | shares of degrees 0 .. 49 and of 50 or more | the paper's histograms |
| degrees of edge ends | degree x share of nodes; from 50 on, the rest of the edges | the same |
| largest class | 26.94 % (products) | VFGNN at epsilon 4: ten equal trials, a constant answer |
| | 12 % (Reddit) | assumed; at most 19.40 %, the paper's lowest accuracy |
| other classes | geometric, ratio 0.9 and 0.93 | assumed, as in our simulators |
| homophily | 0.81 and 0.78 of edges join equal classes | properties of the real sets |

Every limit is computed for three vectors of class shares: as assumed, all equal, and concentrated
on as few classes as the largest share allows. The last two bracket all vectors with that maximum.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from vesper.datasets.block_model.class_structure import skewed_shares
from vesper.datasets.block_model.published_graphs import PRODUCTS_LIKE, REDDIT_LIKE
from vesper.datasets.block_model.simulate_graph import BlockModel
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.theorem_1 import PaperTraining, noise_std_for
from vesper.privacy.planning.paper_plan import PAPER_BATCH_SIZE, PAPER_DATASETS, PaperDataset

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PaperNodes:
    """Classes and degrees of the nodes of a set."""

    dataset: PaperDataset
    num_classes: int
    largest_share: float
    ratio: float
    """Ratio of the shares of the other classes, one to the next."""
    most_concentrated: float
    """Largest share that any published number leaves possible."""
    homophily: float
    """Share of edges that join equal classes."""
    width: int
    """Hidden units of the paper's networks."""
    model: BlockModel
    """Simulator that carries the published degree histogram."""

    def class_shares(self) -> dict[str, Floats]:
        """Return shares of classes: as assumed, equal, and concentrated."""
        assumed = skewed_shares(self.num_classes, largest=self.largest_share, ratio=self.ratio)
        return {
            "assumed": np.array(assumed),
            "equal": np.full(self.num_classes, 1 / self.num_classes),
            "concentrated": concentrated_shares(self.most_concentrated),
        }

    def degree_shares(self, *, max_degree: int) -> Floats:
        """Return the share of nodes with 0, 1, .. max_degree sampled neighbours."""
        counts = np.array(self.model.degrees.histogram, dtype=float)
        return _capped(counts / counts.sum(), max_degree)

    def edge_end_shares(self, *, max_degree: int) -> Floats:
        """Return the same for nodes at the ends of edges, which have more neighbours."""
        counts = np.array(self.model.degrees.histogram, dtype=float)
        ends = np.arange(len(counts)) * counts / counts.sum()  # per node
        ends[-1] = self.model.degrees.mean_degree - ends[:-1].sum()
        return _capped(ends / ends.sum(), max_degree)

    def noise_std(
        self,
        *,
        epsilon: float,
        max_degree: int,
        layer_sensitivity: float,
        batch_size: int = PAPER_BATCH_SIZE,
        num_layers: int = 2,
    ) -> float:
        """Return the noise for which Theorem 1 claims epsilon."""
        training = PaperTraining(
            num_train_nodes=self.dataset.num_train_nodes,
            batch_size=batch_size,
            max_degree=max_degree,
            num_layers=num_layers,
            num_epochs=self.dataset.num_epochs,
            edge_sensitivity=layer_sensitivity,
        )
        budget = Budget(epsilon=epsilon, delta=self.dataset.delta)
        return noise_std_for(training=training, budget=budget)


def concentrated_shares(largest: float) -> Floats:
    """Return shares on as few classes as possible, none above `largest`.

    >>> [round(float(share), 2) for share in concentrated_shares(0.3)]
    [0.3, 0.3, 0.3, 0.1]
    """
    full = ceil(1 / largest) - 1
    return np.array([largest] * full + [1 - full * largest])


def _capped(shares: Floats, max_degree: int) -> Floats:
    """Shares of min(degree, max_degree)."""
    degrees = np.minimum(np.arange(len(shares)), max_degree)
    capped: Floats = np.bincount(degrees, weights=shares, minlength=max_degree + 1).astype(float)
    return capped


_DATASETS = {dataset.name: dataset for dataset in PAPER_DATASETS}

PAPER_NODES: Mapping[str, PaperNodes] = {
    "products": PaperNodes(
        dataset=_DATASETS["products"],
        num_classes=47,
        largest_share=0.2694,
        ratio=0.9,
        most_concentrated=0.2694,
        homophily=0.81,
        width=128,
        model=PRODUCTS_LIKE,
    ),
    "reddit": PaperNodes(
        dataset=_DATASETS["reddit"],
        num_classes=41,
        largest_share=0.12,
        ratio=0.93,
        most_concentrated=0.1940,
        homophily=0.78,
        width=512,
        model=REDDIT_LIKE,
    ),
}
