"""What nodes say to their neighbours in the certified plan: class-aligned, of norm at most 1.

    message = (c, sqrt(1 - c^2) unit(belief - mean belief))
              (c, sqrt(1 - c^2) votes / max(||votes||, length))      where features tell

The belief of a training node is its label, if the label party lends it; of any other node it is the
posterior of the model so far. No edge is read: beliefs are functions of edge-free data and of
earlier releases. The constant c sums to a noisy degree.

What a node is held to be, once it has spoken: Bayes' rule.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def bayes_update(posteriors: Tensor, label_posteriors: Tensor) -> Tensor:
    """Posterior after a node has spoken, from the one before: all (B, num_classes).

    A voice says how likely each class makes what was said. That of an open label is one-hot, and
    so is the posterior after it; that of a response leaves some doubt.

    >>> bayes_update(torch.tensor([[0.2, 0.8], [0.5, 0.5]]), torch.tensor([[1.0, 0.0], [0.9, 0.1]]))
    tensor([[1.0000, 0.0000],
            [0.9000, 0.1000]])
    """
    joint = posteriors * label_posteriors
    total = joint.sum(dim=1, keepdim=True)
    return torch.where(
        total > 0, joint / total, label_posteriors
    )  # of a class held impossible: believe it


AGREEMENT = 0.1
"""Share of attention that depends on whether two nodes lean the same way."""


def class_rows(beliefs: Tensor, *, centre: Tensor) -> Tensor:
    """unit(belief - centre): (num_nodes, num_classes), rows of norm 1.

    | row | result |
    | --- | --- |
    | belief equal to the centre | zero |
    """
    return F.normalize(beliefs - centre, dim=1, eps=1e-12)


def projection_rows(projections: Tensor, *, length: Tensor) -> Tensor:
    """Votes / max(||votes||, length): (num_nodes, num_classes), rows of norm at most 1.

    What a node is sure of is cut short; who has little to say says little.
    """
    sizes = torch.linalg.vector_norm(projections, dim=1, keepdim=True)  # (num_nodes, 1)
    cut: Tensor = projections / sizes.clamp(min=max(float(length), 1e-12))
    return cut


def with_degree(rows: Tensor, *, degree_share: float) -> Tensor:
    """(c, sqrt(1 - c^2) row): (num_nodes, width) rows of norm <= 1 -> the same, a column more."""
    constant = torch.full((len(rows), 1), degree_share)
    return torch.cat([constant, (1 - degree_share**2) ** 0.5 * rows], dim=1)


def class_messages(beliefs: Tensor, *, degree_share: float, centre: Tensor | None = None) -> Tensor:
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
    return with_degree(class_rows(beliefs, centre=centre), degree_share=degree_share)


def damp_by_degree(
    messages: Tensor, noisy_degrees: Tensor, *, median: Tensor | None = None
) -> Tensor:
    """Shorten the messages of nodes with many neighbours, as a GCN does (claim S-GCN-RELEASED).

        message[u] * min(1, sqrt((m + 1) / (d_u + 1))),    m the median of the noisy degrees

    `median` is m if it is given; the noisy degrees of another graph may be meant.

    The degrees come from an earlier release; a receiver is normalised after the noise, by
    `sum_features`. Rows never get longer.
    """
    degrees = noisy_degrees.clamp(min=0) + 1  # (num_nodes,)
    median_degree = degrees.median() if median is None else median.clamp(min=0) + 1
    return messages * (median_degree / degrees).sqrt().clamp(max=1)[:, None]


def attention_keys(beliefs: Tensor, *, centre: Tensor) -> Tensor:
    """What nodes attend by, and are attended by: (num_nodes, num_classes + 1), of norm 1 at most.

        key            = (sqrt(1 - a), sqrt(a) unit(belief - centre)),               a = AGREEMENT
        <key_u, key_v> = 1 - a + a cos(belief_u - centre, belief_v - centre)         1 - 2 a to 1

    A neighbour who leans the same way weighs 1, one who leans the other way less.
    """
    leaning = class_rows(beliefs, centre=centre)
    constant = torch.full((len(beliefs), 1), (1 - AGREEMENT) ** 0.5)
    return torch.cat([constant, AGREEMENT**0.5 * leaning], dim=1)


def positive_part(messages: Tensor) -> Tensor:
    """Leave out what is below zero, which no maximum with floor 0 shows; norm 1, or 0."""
    return F.normalize(messages.clamp(min=0), dim=1, eps=1e-12)


def mean_from_sums(released: Tensor, *, degree_share: float, noise_std: float) -> Tensor:
    """Sums over noisy degrees, after the noise: (num_nodes, message_width) -> the same.

        sum[v] / max(degree[v], 1, noise_std / c),     degree[v] = sum[v]_0 / c,   c = degree_share

    Where the degree drowns in noise the sum is divided by what the noise is, not by chance.
    """
    degrees = released[:, :1] / degree_share  # (num_nodes, 1)
    return released / degrees.clamp(min=max(1.0, noise_std / degree_share))


def sum_features(released: Tensor, scale: Tensor) -> Tensor:
    """Released sums as inputs: scaled, and their direction; (B, 2 * message_width).

    The size of a sum grows with the degree; its direction says which classes are around.

    | row | direction |
    | --- | --- |
    | zero | zero |
    """
    return torch.cat([released / scale, 2 * F.normalize(released, dim=1, eps=1e-6)], dim=1)
