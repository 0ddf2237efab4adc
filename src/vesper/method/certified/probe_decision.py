"""From the probe's release to its findings, in one pure function.

    label reach   whether query nodes have as many labelled neighbours as training nodes
    content       what messages contain (`message_content`), unless the released classes are labels
                  that messages will not contain

Where the probe cannot decide, messages are what they would be without it (`method`), with a little
more noise. All of it is post-processing of the release, of features and of shared labels.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from vesper.method.certified.evidence import residual_labels
from vesper.method.certified.message_content import (
    DEGREE_SHARES,
    MessageContent,
    PartSums,
    choose_content,
)
from vesper.method.certified.probe import ProbeRelease, ProbeSettings
from vesper.method.certified.query_nodes import (
    LabelReach,
    degree_ratio,
    label_reach,
    label_reach_by_degree,
)
from vesper.method.certified.relay import are_separated


@dataclass(frozen=True, eq=False)
class ProbeFindings:
    """What the probe decides."""

    use_labels: bool
    """Whether messages contain the labels of training nodes."""
    content: MessageContent | None = None
    """None where only label reach was measured, or where its result made the rest unusable."""


def decide(
    release: ProbeRelease,
    settings: ProbeSettings,
    *,
    next_noise_std: float,
    can_relay: bool,
    use_labels: bool | None = None,
) -> ProbeFindings:
    """Decide what messages contain.

    Args:
        release: sums of probe messages.
        settings: defaults.
        next_noise_std: noise of the first hop.
        can_relay: the aggregator is one whose sums can be passed on.
        use_labels: an earlier decision, which is not changed; None if there is none.
    """
    if not release.has_content:
        return ProbeFindings(use_labels=reach_of(release).similar)
    reach = reach_of(release)
    is_lower = reach.lower if use_labels is None else not use_labels
    use_labels = reach.similar if use_labels is None else use_labels
    if is_lower:  # the released classes are labels, which messages will not contain
        return ProbeFindings(use_labels=False)
    at_training_nodes = release.rows[release.roles.labelled_nodes].astype(np.float64)
    first = 2 + release.num_classes
    content = choose_content(
        residual_labels(targets_of(release, ordered=settings.ordered), release.own_components),
        PartSums(
            degree=at_training_nodes[:, 1:2],
            classes=at_training_nodes[:, 2:first],
            features=at_training_nodes[:, first:],
            noise_std=release.noise_std,
        ),
        lengths=release.lengths,
        next_noise_std=next_noise_std,
        default_share=settings.degree_share,
        shares=(settings.degree_share,) if settings.degree_share_is_fixed else DEGREE_SHARES,
        separated=are_separated(
            release.rows[:, :2],
            release.roles.labelled_nodes,
            lengths=(release.lengths.label_reach, release.lengths.degree),
            noise_std=release.noise_std,
        ),
        can_relay=can_relay and use_labels and 0 < settings.degree_share < 1,
    )
    if content.projection is not None:  # one column per class, also where labels are numbers
        missing = release.num_classes - content.projection.shape[1]
        padded = torch.nn.functional.pad(content.projection, (0, missing))
        content = replace(content, projection=padded)
    return ProbeFindings(use_labels, content)


def reach_of(release: ProbeRelease) -> LabelReach:
    """Compare how many labelled neighbours training nodes and query nodes have."""
    roles, lengths = release.roles, release.lengths
    if not len(roles.query_nodes):
        return LabelReach(similar=True, lower=False)
    noise_std = release.noise_std / lengths.label_reach
    labelled_counts, query_counts = (
        release.rows[nodes, 0] / np.float32(lengths.label_reach)
        for nodes in (roles.labelled_nodes, roles.query_nodes)
    )
    reach = label_reach(labelled_counts, query_counts, noise_std=noise_std)
    if reach.similar or not release.has_content:
        return reach
    degrees = torch.from_numpy(release.rows[:, 1] / np.float32(lengths.degree))
    ratio = degree_ratio(
        degrees,
        roles.labelled_nodes,
        roles.query_nodes,
        noise_std=release.noise_std / lengths.degree,
    )
    if ratio == 1:
        return reach
    by_degree = label_reach_by_degree(
        labelled_counts, query_counts, ratio=ratio, noise_std=noise_std
    )
    return by_degree or reach


def targets_of(release: ProbeRelease, *, ordered: bool) -> np.ndarray:
    """Return what is to be explained: classes or, for numbers, their positions in order.

    Separate bins do not show which numbers are close: sums over neighbours explain at most a tenth
    as much of the bins as of the number.
    """
    label_posteriors = release.roles.label_posteriors.numpy()
    if not ordered:
        return label_posteriors
    positions = np.arange(label_posteriors.shape[1], dtype=np.float32)
    return (label_posteriors @ positions)[:, None]
