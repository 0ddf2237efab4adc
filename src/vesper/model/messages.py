"""What nodes say to their neighbours in the certified plan: class-aligned, of norm at most 1.

    message = (c, sqrt(1 - c^2) unit(belief - mean belief))

The belief of a training node is its label, if the label party lends it; of any other node it is the
posterior of the model so far. No edge is read: beliefs are functions of edge-free data and of
earlier releases. The constant c sums to a noisy degree.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def messages_of(beliefs: Tensor, *, degree_share: float, centre: Tensor | None = None) -> Tensor:
    """(num_nodes, num_classes) beliefs -> (num_nodes, num_classes + 1), rows of norm <= 1.

    Args:
        beliefs: of all nodes.
        degree_share: c.
        centre: (num_classes,) what counts as the mean belief; that of these nodes if not given.

    | row | result |
    | --- | --- |
    | belief equal to the mean belief | (c, 0, .., 0) |
    """
    centre = beliefs.mean(dim=0) if centre is None else centre
    centred = F.normalize(beliefs - centre, dim=1, eps=1e-12)
    constant = torch.full((len(beliefs), 1), degree_share)
    return torch.cat([constant, (1 - degree_share**2) ** 0.5 * centred], dim=1)


def damp(messages: Tensor, noisy_degrees: Tensor, *, median: Tensor | None = None) -> Tensor:
    """Shorten the messages of nodes with many neighbours, as a GCN does (claim S-GCN-RELEASED).

        message[u] * min(1, sqrt((m + 1) / (d_u + 1))),    m the median of the noisy degrees

    `median` is m if it is given; the noisy degrees of another graph may be meant.

    The degrees come from an earlier release; a receiver is normalised after the noise, by
    `describe`. Rows never get longer.
    """
    degrees = noisy_degrees.clamp(min=0) + 1  # (num_nodes,)
    typical = degrees.median() if median is None else median.clamp(min=0) + 1
    return messages * (typical / degrees).sqrt().clamp(max=1)[:, None]


def describe(released: Tensor, scale: Tensor) -> Tensor:
    """Released sums as inputs: scaled, and their direction; (B, 2 * message_width).

    The size of a sum grows with the degree; its direction says which classes are around.

    | row | direction |
    | --- | --- |
    | zero | zero |
    """
    return torch.cat([released / scale, 2 * F.normalize(released, dim=1, eps=1e-6)], dim=1)
