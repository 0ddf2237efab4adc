"""Messages that relay received sums, and the removal of what they return to its origin.

    excess[u]  = class sums that u received - rate x degree of u
    message[u] = (c,  sqrt(1 - c^2) excess[u] / max(||excess[u]||, L))
    cleared[v] = sum over neighbours - sqrt(1 - c^2) degree of v / L (own row of v - rate) J
    J          = mean over nodes with labelled neighbours of what a step of the excess e becomes,
                 times L:  I where nothing is cut,  L / ||e|| (I - e e^T / ||e||^2) where it is

A relay returns to a node what the node itself contributed: its label to a training node, a
prediction to any other. A model would learn from that in training and miss it in query nodes, so it
is removed everywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from vesper.model.message_rows import projection_rows, with_degree

ERRORS = 2.0
"""Standard errors within which a mean is assumed to lie."""
ROWS_PER_BLOCK = 1 << 14
"""Nodes that are processed at a time."""


def class_rate(sums: Tensor) -> Tensor:
    """Return mean class sums over the mean degree; noise in either has mean 0.

    Args:
        sums: (num_nodes, 1 + num_classes) received sums of degree and class rows of norm 1.

    Returns:
        (num_classes,)
    """
    total = torch.zeros(sums.shape[1], dtype=torch.float64)
    for rows in _blocks(sums):
        total += sums[rows].sum(dim=0, dtype=torch.float64)
    means = total / len(sums)
    return (means[1:] / means[0].clamp(min=1e-6)).float()


def excess_of(sums: Tensor, rate: Tensor) -> Tensor:
    """Return class sums beyond rate x degree: (num_nodes, num_classes)."""
    return sums[:, 1:] - sums[:, :1] * rate


def rms_excess(sums: Tensor, rate: Tensor) -> Tensor:
    """Return the root mean square norm of the excess: a scalar."""
    total = torch.zeros((), dtype=torch.float64)
    for rows in _blocks(sums):
        total += excess_of(sums[rows], rate).double().square().sum()
    return (total / len(sums)).sqrt().float()


def mean_jacobian(sums: Tensor, rate: Tensor, length: float, weights: Tensor) -> Tensor:
    """Return J: what a step of the excess becomes in a message, times L; weighted mean over nodes.

    Args:
        sums: (num_nodes, 1 + num_classes).
        rate: (num_classes,).
        length: L.
        weights: (num_nodes,) weight of each node; their sum is not 0.

    Returns:
        (num_classes, num_classes)
    """
    num_classes = len(rate)
    jacobian = torch.zeros(num_classes, num_classes, dtype=torch.float64)
    for rows in _blocks(sums):
        excess = excess_of(sums[rows], rate).double()  # (B, num_classes)
        sizes = torch.linalg.vector_norm(excess, dim=1).clamp(min=1e-9)  # (B,)
        # A row of a message is a step of length 1; this share of it, forwards or back, is not cut.
        whole = ((length - sizes + 1) / 2).clamp(0, 1)
        turned_share = (1 - whole) * (length / sizes).clamp(max=1)
        weight = weights[rows].double()
        jacobian += (weight * (whole + turned_share)).sum() * torch.eye(
            num_classes, dtype=torch.float64
        )
        jacobian -= (excess * (weight * turned_share / sizes.square())[:, None]).T @ excess
    return (jacobian / weights.sum(dtype=torch.float64)).float()


@dataclass(frozen=True, eq=False, kw_only=True)
class RelayTransform:
    """Transform of received sums into messages that relay them.

    Args:
        rate: (num_classes,) mean class sums per neighbour.
        length: L, the norm above which an excess is cut.
        jacobian: (num_classes, num_classes) J.
        degree_share: c, above 0.
    """

    rate: Tensor
    length: float
    jacobian: Tensor
    degree_share: float

    def messages(self, sums: Tensor) -> Tensor:
        """Build messages: (num_nodes, 1 + num_classes) -> the same shape, rows of norm at most 1.

        | excess | result |
        | --- | --- |
        | none | (c, 0, .., 0) |
        """
        messages, length = torch.empty_like(sums), torch.tensor(self.length)
        for rows in _blocks(sums):
            cut = projection_rows(excess_of(sums[rows], self.rate), length=length)
            messages[rows] = with_degree(cut, degree_share=self.degree_share)
        return messages

    def remove_own_message(self, released: Tensor, own: Tensor, *, noise_std: float) -> Tensor:
        """Remove from sums what each node contributed itself.

        Released degrees are noisy: they are shrunk to their mean by the noise's share of their
        variance.

        Args:
            released: (num_nodes, 1 + num_classes) sums of these messages.
            own: (num_nodes, num_classes) the row that each node contributed, of norm at most 1.
            noise_std: noise in the sums.
        """
        variance, mean = torch.var_mean(released[:, 0] / self.degree_share, correction=0)
        noise = (noise_std / self.degree_share) ** 2
        shrinkage = (1 - noise / variance.clamp(min=1e-12)).clamp(min=0)
        scale = (1 - self.degree_share**2) ** 0.5 / self.length
        cleared = torch.empty_like(released)
        for rows in _blocks(released):
            degrees = mean + (released[rows, :1] / self.degree_share - mean) * shrinkage  # (B, 1)
            # (B, num_classes)
            own_contribution = scale * degrees * ((own[rows] - self.rate) @ self.jacobian)
            cleared[rows, :1] = released[rows, :1]
            cleared[rows, 1:] = released[rows, 1:] - own_contribution
        return cleared


def lacks_signal(labelled_sums: Tensor, query_sums: Tensor, *, noise_std: float) -> bool:
    """Whether query nodes receive less than half the signal of training nodes, beyond two errors.

    Signal is the squared norm of a row beyond that of noise. In another time window, where no node
    has a label, there is nothing to relay, and a model that was trained on relayed sums would be
    queried without any. Nodes with fewer neighbours are expected to receive correspondingly less.

    Args:
        labelled_sums: (B, 1 + num_classes) sums at training nodes.
        query_sums: (B, 1 + num_classes) sums at query nodes.
        noise_std: noise in both.
    """
    labelled_squares, query_squares = _squares(labelled_sums), _squares(query_sums)
    noise = (labelled_sums.shape[1] - 1) * noise_std**2
    degrees = [max(float(rows[:, 0].mean()), 1e-6) for rows in (labelled_sums, query_sums)]
    ratio = degrees[1] / degrees[0]
    expected_ratio = min(ratio, ratio**2) / 2  # signal grows with the degree, or its square
    shortfall = expected_ratio * float(labelled_squares.mean() - noise) - float(
        query_squares.mean() - noise
    )
    error = (
        float(
            expected_ratio**2 * labelled_squares.var() / len(labelled_squares)
            + query_squares.var() / len(query_squares)
        )
        ** 0.5
    )
    return bool(shortfall > ERRORS * error)


def _squares(sums: Tensor) -> Tensor:
    """Squared norms of the class sums: (B, 1 + num_classes) -> (B,)."""
    return torch.cat([sums[rows, 1:].double().square().sum(dim=1) for rows in _blocks(sums)])


def _blocks(rows: Tensor) -> Iterator[slice]:
    """All rows, some at a time: a second copy of all would not fit into memory on large graphs."""
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        yield slice(start, start + ROWS_PER_BLOCK)
