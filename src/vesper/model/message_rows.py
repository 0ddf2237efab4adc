"""Messages of the certified plan, of norm at most 1, and what heads read of their sums.

    message = (c, sqrt(1 - c^2) unit(belief - mean belief))
              (c, sqrt(1 - c^2) projection / max(||projection||, length))     feature projections

The belief about a training node is its label, if the label party shares it; about any other node it
is the posterior of the model so far. No edge is read: beliefs are functions of edge-free data and
earlier releases. The constant c sums to a noisy degree.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def bayes_update(posteriors: Tensor, label_posteriors: Tensor) -> Tensor:
    """Update posteriors by shared labels with Bayes' rule: all (B, num_classes).

    A row of `label_posteriors` is how likely each class makes the shared label. For an exact label
    it is one-hot, and so is the updated posterior; a randomised response leaves some doubt.

    >>> bayes_update(torch.tensor([[0.2, 0.8], [0.5, 0.5]]), torch.tensor([[1.0, 0.0], [0.9, 0.1]]))
    tensor([[1.0000, 0.0000],
            [0.9000, 0.1000]])
    """
    joint = posteriors * label_posteriors
    total = joint.sum(dim=1, keepdim=True)
    # A label that was considered impossible is believed.
    return torch.where(total > 0, joint / total, label_posteriors)


AGREEMENT = 0.1
"""Share of an attention score that depends on whether two beliefs lean the same way."""


def class_rows(beliefs: Tensor, *, centre: Tensor) -> Tensor:
    """Return unit(belief - centre): (num_nodes, num_classes), rows of norm 1.

    | row | result |
    | --- | --- |
    | belief equal to the centre | zero |
    """
    return F.normalize(beliefs - centre, dim=1, eps=1e-12)


def projection_rows(projections: Tensor, *, length: Tensor) -> Tensor:
    """Cut projections: projection / max(||projection||, length), (num_nodes, num_classes).

    Rows have norm at most 1. Long ones are cut to it; short ones stay short.
    """
    sizes = torch.linalg.vector_norm(projections, dim=1, keepdim=True)  # (num_nodes, 1)
    cut: Tensor = projections / sizes.clamp(min=max(float(length), 1e-12))
    return cut


def with_degree(rows: Tensor, *, degree_share: float) -> Tensor:
    """Return (c, sqrt(1 - c^2) row): (num_nodes, width), norm <= 1 -> (num_nodes, 1 + width)."""
    constant = torch.full((len(rows), 1), degree_share)
    return torch.cat([constant, (1 - degree_share**2) ** 0.5 * rows], dim=1)


def class_messages(beliefs: Tensor, *, degree_share: float, centre: Tensor | None = None) -> Tensor:
    """Build messages of norm <= 1: (num_nodes, num_classes) -> (num_nodes, num_classes + 1).

    Args:
        beliefs: class probabilities of the nodes.
        degree_share: c.
        centre: (num_classes,) mean belief; that of these nodes by default.

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

    The degrees come from an earlier release; a receiver is normalised after the noise, by
    `sum_features`. Rows never get longer.

    Args:
        messages: (num_nodes, width).
        noisy_degrees: (num_nodes,) d.
        median: m, if it is that of another graph; by default that of `noisy_degrees`.
    """
    degrees = noisy_degrees.clamp(min=0) + 1  # (num_nodes,)
    median_degree = degrees.median() if median is None else median.clamp(min=0) + 1
    return messages * (median_degree / degrees).sqrt().clamp(max=1)[:, None]


def attention_keys(beliefs: Tensor, *, centre: Tensor) -> Tensor:
    """Keys, and queries, of attention: (num_nodes, num_classes + 1), rows of norm at most 1.

        key            = (sqrt(1 - a), sqrt(a) unit(belief - centre)),               a = AGREEMENT
        <key_u, key_v> = 1 - a + a cos(belief_u - centre, belief_v - centre)         1 - 2 a to 1

    A neighbour whose belief leans the same way has weight 1, one that leans the other way less.
    """
    leaning = class_rows(beliefs, centre=centre)
    constant = torch.full((len(beliefs), 1), (1 - AGREEMENT) ** 0.5)
    return torch.cat([constant, AGREEMENT**0.5 * leaning], dim=1)


def positive_part(messages: Tensor) -> Tensor:
    """Drop entries below 0, which a maximum with floor 0 cannot show; rows of norm 1, or 0."""
    return F.normalize(messages.clamp(min=0), dim=1, eps=1e-12)


def mean_from_sums(released: Tensor, *, degree_share: float, noise_std: float) -> Tensor:
    """Divide sums by noisy degrees, after the noise: (num_nodes, message_width) -> the same.

        sum[v] / max(degree[v], 1, noise_std / c),     degree[v] = sum[v]_0 / c,   c = degree_share

    Where noise exceeds the degree, the sum is divided by the noise std, not by a random number.
    """
    degrees = released[:, :1] / degree_share  # (num_nodes, 1)
    return released / degrees.clamp(min=max(1.0, noise_std / degree_share))


def sum_features(released: Tensor, scale: Tensor) -> Tensor:
    """Turn released sums into inputs: scaled, and their direction; (B, 2 * message_width).

    The size of a sum grows with the degree; its direction shows which classes are nearby.

    | row | direction |
    | --- | --- |
    | zero | zero |
    """
    return torch.cat([released / scale, 2 * F.normalize(released, dim=1, eps=1e-6)], dim=1)
