"""Messages that hand on what was heard, and what they bring back to those who had said it.

    excess[u]  = classes heard by u - rate x degree of u
    message[u] = (c,  sqrt(1 - c^2) excess[u] / max(||excess[u]||, L))
    heard[v]   = sum over neighbours - degree of v x whole / L (own row of v - rate)

What a training node has said comes back to it, and to no node that is asked for: it is taken off.
Only where nothing is cut does it come back in proportion to what was said; `whole` is the share of
neighbours that cut nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from vesper.model.messages import vote_rows, with_degree

ERRORS = 2.0
"""Standard errors within which a mean may lie."""


def rate_of(heard: Tensor) -> Tensor:
    """Mean of classes over mean degree: noise in either has mean 0.

    Args:
        heard: (num_nodes, 1 + num_classes) sums of degree and classes, of rows of length 1.

    Returns:
        (num_classes,)
    """
    means = heard.double().mean(dim=0)
    return (means[1:] / means[0].clamp(min=1e-6)).float()


def excess_of(heard: Tensor, rate: Tensor) -> Tensor:
    """What was heard beyond what as many neighbours tell anybody: (num_nodes, num_classes)."""
    return heard[:, 1:] - heard[:, :1] * rate


@dataclass(frozen=True, eq=False, kw_only=True)
class HandedOn:
    """How what was heard is handed on.

    Args:
        rate: (num_classes,) classes heard a neighbour.
        length: L, the longest excess that is not cut.
        whole: share of neighbours that cut nothing.
        degree_share: c, above 0.
    """

    rate: Tensor
    length: float
    whole: float
    degree_share: float

    def messages(self, heard: Tensor) -> Tensor:
        """(num_nodes, 1 + num_classes) -> the same, rows of norm 1 at most.

        | excess | result |
        | --- | --- |
        | none | (c, 0, .., 0) |
        """
        rows = vote_rows(excess_of(heard, self.rate), length=torch.tensor(self.length))
        return with_degree(rows, degree_share=self.degree_share)

    def without_own(self, released: Tensor, own: Tensor, *, noise_std: float) -> Tensor:
        """Take off what came back to some nodes.

        Their degrees are heard through noise, and drawn to the mean by as much as is noise.

        Args:
            released: (B, 1 + num_classes) sums of these messages.
            own: (B, num_classes) what each had said, of length 1.
            noise_std: in the sums.
        """
        degrees = released[:, :1] / self.degree_share  # (B, 1)
        variance, mean = torch.var_mean(degrees, correction=0)
        noise = (noise_std / self.degree_share) ** 2
        degrees = mean + (degrees - mean) * (1 - noise / variance.clamp(min=1e-12)).clamp(min=0)
        others = (1 - self.degree_share**2) ** 0.5
        back = others * self.whole / self.length * degrees * (own - self.rate)  # (B, num_classes)
        return torch.cat([released[:, :1], released[:, 1:] - back], dim=1)


def whole_of(heard: Tensor, rate: Tensor, length: float) -> Tensor:
    """Share of neighbours whose excess is not cut, by how many neighbours each has: a scalar."""
    is_whole = torch.linalg.vector_norm(excess_of(heard, rate), dim=1) <= length
    degrees = heard[:, 0].double()
    return (degrees[is_whole].sum() / degrees.sum().clamp(min=1e-6)).clamp(0, 1).float()


def is_lacking(ours: Tensor, theirs: Tensor, *, noise_std: float) -> bool:
    """Whether asked nodes hear less than half of what training nodes hear, beyond two errors.

    By how much there is in a row besides noise: in another window, where nobody has a label, there
    is nothing to hand on, and a model that was trained on it would be asked about silence.

    Args:
        ours: (B, 1 + num_classes) sums at training nodes.
        theirs: (B, 1 + num_classes) sums at asked nodes.
        noise_std: in both.
    """
    our, their = (rows[:, 1:].double().square().sum(dim=1) for rows in (ours, theirs))
    noise = (ours.shape[1] - 1) * noise_std**2
    lacking = float(our.mean() - noise) / 2 - float(their.mean() - noise)
    error = float(our.var() / 4 / len(our) + their.var() / len(their)) ** 0.5
    return bool(lacking > ERRORS * error)
