"""What messages contain: decided by the probe's release, in one pure function.

    rest        = labels of training nodes - what their own features explain of them;
                  for numbers, positions in their order instead of bins
    explained   = adjusted R^2 of the rest by what training nodes received of each part
    projection  = features replace classes where they explain more, beyond chance and the degree
    relay       = received sums are passed on where both explain so little that these are worth more
    c           = the degree share with which degree and content together explain most in the hop

Where the probe cannot decide, messages are what they would be without it (`method`), with a little
more noise. All of it is post-processing of the release, of features and of shared labels.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from vesper.method.certified.evidence import (
    Doubles,
    ExplainedShare,
    explained_share,
    residual_labels,
    select_columns,
)
from vesper.method.certified.probe import ProbeRelease, ProbeSettings
from vesper.method.certified.probe_size import PartLengths
from vesper.method.certified.query_nodes import (
    LabelReach,
    degree_ratio,
    label_reach,
    label_reach_by_degree,
)
from vesper.method.certified.relay import are_separated, should_relay

DOUBT_DEVIATIONS = 2.0
"""Deviations from chance by which an explained share may be wrong."""
MIN_GAIN = 1.02
"""Factor by which another degree share must still explain more, to be chosen."""
DEGREE_SHARES = tuple(k / 20 for k in range(3, 19))
"""Values that the degree share may take."""
MIN_Z_SCORE = 2.5
"""Deviations from chance above which a part explains anything at all."""
MIN_NOISE = 1.0
"""Noise of the first hop above which the degree share may leave its default. With less noise, parts
of a message hardly suffer from being short, and carry more than a regression shows."""
MIN_LEAD_ERRORS = 0.5
"""Standard errors by which features have to lead classes, each next to the degree."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MessageContent:
    """What messages contain."""

    degree_share: float
    projection: Tensor | None = None  # (components, num_classes)
    """Coefficients of the feature projection, where it replaces classes."""
    project_later_hops: bool = False
    """Whether later hops contain the projection too: classes explain nothing."""
    relay: bool = False
    """Whether hops pass on received sums."""


@dataclass(frozen=True, eq=False)
class ProbeFindings:
    """What the probe decides."""

    use_labels: bool
    """Whether messages contain the labels of training nodes."""
    content: MessageContent | None = None
    """None where only label reach was measured, or where it made the rest unusable."""


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
        use_labels: what was decided before, if it was; it stays.
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
    content = decide_content(
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
    """What is to be explained: classes, or the positions of numbers in their order.

    A slightly larger number is in another bin just as a much larger one is: of separate bins, sums
    over neighbours explain a tenth of what they explain of the number, or less.
    """
    label_posteriors = release.roles.label_posteriors.numpy()
    if not ordered:
        return label_posteriors
    positions = np.arange(label_posteriors.shape[1], dtype=np.float32)
    return (label_posteriors @ positions)[:, None]


@dataclass(frozen=True, eq=False, kw_only=True)
class PartSums:
    """What training nodes received of each part: (num_train, width) each."""

    degree: Doubles
    classes: Doubles
    features: Doubles
    noise_std: float

    def explain(self, rest: Doubles, part: Doubles) -> ExplainedShare:
        """How much of the rest a part explains."""
        return explained_share(rest, part, noise_std=self.noise_std)


def decide_content(
    rest: Doubles,
    sums: PartSums,
    *,
    lengths: PartLengths,
    next_noise_std: float,
    default_share: float,
    separated: bool = False,
    can_relay: bool = False,
) -> MessageContent:
    """Choose between classes, feature projection and relay, and the degree share.

    Args:
        rest: (num_train, targets) what is to be explained.
        sums: what training nodes received.
        lengths: norm of each part in a probe message.
        next_noise_std: noise of the first hop.
        default_share: degree share where no other is found to be better.
        separated: labelled nodes are connected through other nodes only.
        can_relay: these others may pass on what they receive.
    """
    less_noise = (sums.noise_std / next_noise_std) ** 2 if sums.noise_std else 1.0
    selected = select_columns(rest, sums.features, noise_std=sums.noise_std)
    features = sums.features[:, selected.columns]
    by_degree, by_class = (sums.explain(rest, part) for part in (sums.degree, sums.classes))
    by_features = selected.explained
    with_class, with_features = (  # the degree is in messages with either
        sums.explain(rest, np.column_stack([sums.degree, part]))
        for part in (sums.classes, features)
    )
    with_features = with_features.reduced_by(selected.penalty)
    use_projection = (
        by_features.z_score > MIN_Z_SCORE
        and with_features.share - with_class.share
        > MIN_LEAD_ERRORS * math.hypot(with_class.error, with_features.error)
    )
    parts = [by_class.in_addition_to(by_degree, with_class)]
    parts += [by_features.in_addition_to(by_degree, with_features)] * use_projection
    if can_relay and should_relay(parts, degree=by_degree, separated=separated):
        return MessageContent(degree_share=default_share, relay=True)
    pair = DegreeTradeOff(
        degree=by_degree,
        other=by_features if use_projection else by_class,
        both=(with_features if use_projection else with_class).share,
        degree_gain=less_noise / lengths.degree**2,
        other_gain=less_noise / (lengths.features if use_projection else lengths.classes) ** 2,
    )
    return MessageContent(
        degree_share=pair.best_share(default_share)
        if next_noise_std >= MIN_NOISE
        else default_share,
        projection=torch.from_numpy(selected.coefficients) if use_projection else None,
        project_later_hops=use_projection and by_class.z_score <= MIN_Z_SCORE,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class DegreeTradeOff:
    """Degree and content, which share the length of a message (c, sqrt(1 - c^2) content).

    Another share than the default is taken when it explains more even if the part that gains from
    it explains less than it seems, and the part that loses explains more.

    Args:
        degree: what the degree explains.
        other: what the content explains.
        both: share that they explain together.
        degree_gain: strength of the degree as the whole message, over that in the probe.
        other_gain: the same for the content.
    """

    degree: ExplainedShare
    other: ExplainedShare
    both: float
    degree_gain: float
    other_gain: float

    def explain(self, share: float, doubt: float) -> float:
        """What they explain with this degree share.

        `doubt` is added to the degree's share and subtracted from the content's. What both explain
        is counted once, with the part that is received better.
        """
        degree, other = self.degree_gain * share**2, self.other_gain * (1 - share**2)

        def in_all(first: ExplainedShare, second: ExplainedShare) -> float:
            return first.with_less_noise(degree, doubt=doubt) + second.with_less_noise(
                other, doubt=-doubt
            )

        return max(
            in_all(self.degree, replace(self.other, share=self.both - self.degree.share)),
            in_all(replace(self.degree, share=self.both - self.other.share), self.other),
        )

    def gain(self, share: float, default: float, *, doubt: float = DOUBT_DEVIATIONS) -> float:
        """How many times as much is explained as with the default, in the worse case."""
        signed = -doubt if share > default else doubt
        return self.explain(share, signed) / max(self.explain(default, signed), 1e-300)

    def best_share(
        self, default: float, *, doubt: float = DOUBT_DEVIATIONS, min_gain: float = MIN_GAIN
    ) -> float:
        """Choose the degree share, the default unless another is clearly better."""

        def gain(share: float) -> float:
            return self.gain(share, default, doubt=doubt)

        best = max(DEGREE_SHARES, key=gain)
        return best if gain(best) > min_gain else default
