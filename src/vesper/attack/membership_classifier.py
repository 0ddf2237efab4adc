"""Who was in training? From posteriors alone.

| classes | score of a node | learned from |
| --- | --- | --- |
| two | -entropy of its posterior (Song and Mittal 2021) | nothing |
| more | three-layer perceptron on the sorted posterior (Olatunji et al. 2021) | a shadow model |
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from vesper.model.encoder import initialize

Posteriors = NDArray[np.float64]
"""(nodes, num_classes)."""

WIDTHS = (64, 32)
EPOCHS, LEARNING_RATE, WEIGHT_DECAY = 200, 0.01, 1e-4
SMALLEST = 1e-12


def certainty(posteriors: Posteriors) -> NDArray[np.float64]:
    """Minus the entropy: (nodes,).

    >>> certainty(np.array([[1.0, 0.0]])).round(6).tolist()
    [-0.0]
    """
    clipped = np.clip(posteriors, SMALLEST, 1.0)
    return np.asarray((clipped * np.log(clipped)).sum(axis=1))


class MembershipClassifier:
    """Learns to tell members of a shadow model from others; used on the target's posteriors."""

    def __init__(self, num_classes: int, *, seed: int) -> None:
        first, second = WIDTHS
        self._network = nn.Sequential(
            nn.Linear(num_classes, first),
            nn.ReLU(),
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, 1),
        )
        initialize(self._network, seed)

    def learn(self, members: Posteriors, others: Posteriors) -> None:
        """Both kinds weigh the same, however many there are."""
        rows = torch.cat([_inputs(members), _inputs(others)])
        wanted = torch.cat([torch.ones(len(members)), torch.zeros(len(others))])
        weights = torch.where(wanted > 0, 1 / len(members), 1 / len(others))
        optimizer = torch.optim.Adam(
            self._network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY
        )
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            scores = self._network(rows)[:, 0]
            loss = F.binary_cross_entropy_with_logits(
                scores, wanted, weight=weights, reduction="sum"
            )
            torch.autograd.backward([loss])
            optimizer.step()

    @torch.no_grad()
    def score(self, posteriors: Posteriors) -> NDArray[np.float64]:
        """(nodes,)."""
        scores: NDArray[np.float64] = self._network(_inputs(posteriors))[:, 0].double().numpy()
        return scores


def _inputs(posteriors: Posteriors) -> torch.Tensor:
    """Logs of the posterior, largest first: the class itself says nothing about membership."""
    ordered = -np.sort(-posteriors, axis=1)
    return torch.from_numpy(np.log(np.clip(ordered, 1e-6, 1.0)).astype(np.float32))
