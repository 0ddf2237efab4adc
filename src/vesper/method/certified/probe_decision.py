"""The trial: is it the degree, classes or features of neighbours that tell? One paid release.

    message    = (p [u speaks],  a,  b class row of u,  c unit(components of u's features))
    rest       = labels of training nodes - what their own components explain of them;
                 of numbers, their places in the order instead of bins
    explained  = adjusted R^2 of the rest by what training nodes heard of a kind
    votes[u]   = unit(components of u) @ coefficients of that regression
    degree_share  = what lets degree and the other part together explain most in the first hop

Nodes go on saying their class unless features explain more, beyond chance, or both explain so
little that what neighbours have heard is worth more (`relay`). Where features do, they say
what their features vote for, one number a class, so that hops stay as wide and as noisy as they
were: in the first hop, and in all where classes tell nothing. How much of a message is the constant
that sums to the degree follows too. Where the trial cannot tell, all is said as it would be without
(`method.certified.method`), with a little more noise.

All of it is post-processing of the release, of features, and of labels that were lent.

How much of a message should be the constant that sums to the degree.

    message = (c, sqrt(1 - c^2) row):   what c lets degree and row together explain most?

Another share than the default is taken when it explains more even if what gains from it explains
less than it seems, and what loses more.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from vesper.method.certified.evidence import (
    Doubles,
    ExplainedShare,
    explained_share,
    select_columns,
)
from vesper.method.certified.label_reach import LABEL_REACH_SHARE
from vesper.method.certified.relay import should_relay
from vesper.model.principal_components import COMPONENTS

DOUBT_DEVIATIONS = 2.0
"""Deviations of chance by which it might."""
MIN_GAIN = 1.02
"""How many times as much another share must explain all the same."""
DEGREE_SHARES = tuple(k / 20 for k in range(3, 19))
"""What c may be."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DegreeTradeOff:
    """Degree and what is said beside it, which share the length of a message.

    Args:
        degree: what the degree explains.
        other: what the other part explains.
        both: share that they explain together.
        degree_gain: how many times as strong as in the trial it is when it is all of a message.
        other_gain: the same for the other part.
    """

    degree: ExplainedShare
    other: ExplainedShare
    both: float
    degree_gain: float
    other_gain: float

    def explain(self, share: float, doubt: float) -> float:
        """What they explain with this degree share; `doubt` is for the degree, against the other.

        What both tell is counted once, where it is heard better.
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
        """How many times as much as with the default, in the worse case."""
        signed = -doubt if share > default else doubt
        return self.explain(share, signed) / max(self.explain(default, signed), 1e-300)

    def best_share(
        self, default: float, *, doubt: float = DOUBT_DEVIATIONS, min_gain: float = MIN_GAIN
    ) -> float:
        """Choose the degree share."""

        def gain(share: float) -> float:
            return self.gain(share, default, doubt=doubt)

        best = max(DEGREE_SHARES, key=gain)
        return best if gain(best) > min_gain else default


MAX_CONTENT_SHARE = 0.1
"""Of the budget, for the trial."""
ENOUGH_EVIDENCE = 250.0
"""Share times training nodes over squared noise, or over 1 where there is less noise, above which a
smaller share will do: what a hop hardly misses is not saved."""
MIN_EVIDENCE = 5.0
"""Below it a trial tells too little, and is not made."""
NODES_PER_COLUMN = 6
"""Training nodes for each number that is heard: with fewer, regressions follow chance."""
MIN_Z_SCORE = 2.5
"""Deviations of chance, above which features explain anything."""
TYPICAL_DEGREE = 10
TYPICAL_SHARE = 0.3
"""Of labels, by a sum that is heard without noise."""
MIN_NOISE = 1.0
"""In the first hop, for another degree share than the default: with less noise parts of a message
hardly miss their length, and what they tell is more than a regression sees."""
MIN_LEAD_ERRORS = 0.5
"""Errors by which features have to be ahead of classes, each beside the degree."""


def content_share(noise_std: float, *, num_train: int, num_classes: int) -> float:
    """Share of the budget that the trial takes, beside the poll.

    Args:
        noise_std: with which one release would use up the budget; 0 without privacy.
        num_train: public.
        num_classes: public.

    >>> nodes = (2_000, 40_000, 100)
    >>> [round(content_share(1.5, num_train=n, num_classes=2), 4) for n in nodes]
    [0.1, 0.0141, 0.0]
    >>> content_share(0.1, num_train=5_000, num_classes=2)
    0.05
    >>> content_share(7.0, num_train=2_000, num_classes=2)
    0.0
    """
    if num_train < NODES_PER_COLUMN * (num_classes + COMPONENTS):
        return 0.0
    if MAX_CONTENT_SHARE * num_train < MIN_EVIDENCE * noise_std**2:
        return 0.0
    if noise_std == 0:
        return MAX_CONTENT_SHARE
    return min(MAX_CONTENT_SHARE, ENOUGH_EVIDENCE * max(noise_std, 1.0) ** 2 / num_train)


def probe_share(noise_std: float, *, num_train: int, num_classes: int) -> float:
    """Share of the budget that poll and trial take together."""
    return LABEL_REACH_SHARE + content_share(
        noise_std, num_train=num_train, num_classes=num_classes
    )


@dataclass(frozen=True, kw_only=True)
class PartLengths:
    """How much of a message of the trial is which part; all together it has norm 1."""

    label_reach: float
    degree: float
    classes: float
    features: float

    @classmethod
    def for_share(cls, share: float) -> "PartLengths":
        """Give the poll what it takes of the budget; features, whose share is lost, half the rest.

        A degree is one number and heard well; classes are several.
        """
        label_reach = LABEL_REACH_SHARE / (LABEL_REACH_SHARE + share)
        degree, classes, features = (
            math.sqrt((1 - label_reach) * part) for part in (1 / 8, 3 / 8, 1 / 2)
        )
        return cls(
            label_reach=math.sqrt(label_reach), degree=degree, classes=classes, features=features
        )


def evidence_of(num_train: int, *, lengths: PartLengths, noise_std: float) -> float:
    """Squared deviations of chance with which one column that tells all would be heard."""
    if noise_std == 0:
        return math.inf
    return TYPICAL_DEGREE * TYPICAL_SHARE * num_train * (lengths.features / noise_std) ** 2


@dataclass(frozen=True, eq=False, kw_only=True)
class PartSums:
    """What training nodes heard in the trial: (num_train, width) each."""

    degree: Doubles
    classes: Doubles
    features: Doubles
    noise_std: float

    def explain(self, residuals: Doubles, part: Doubles) -> ExplainedShare:
        """How much of the rest a part explains."""
        return explained_share(residuals, part, noise_std=self.noise_std)


@dataclass(frozen=True, eq=False, kw_only=True)
class ContentDecision:
    """What the trial has found out."""

    projection: Doubles | None  # (components, num_classes)
    """What features vote for, where they tell more than classes."""
    project_later_hops: bool
    """Later hops say votes too: classes were not heard to tell anything."""
    degree_share: float
    relay: bool = False
    """Nodes know one another through others, who hand on what they hear."""


def decide_content(
    residuals: Doubles,
    sums: PartSums,
    *,
    lengths: PartLengths,
    next_noise_std: float,
    default: float,
    separated: bool = False,
    can_relay: bool = False,
) -> ContentDecision:
    """Say what nodes should say.

    Args:
        residuals: (num_train, num_classes) what is to be explained.
        sums: what training nodes heard.
        lengths: of the parts in the trial.
        next_noise_std: of the first hop.
        default: degree share where no other is found to be better.
        separated: speakers know one another through others only.
        can_relay: these others may hand on what they hear.
    """
    less_noise = (sums.noise_std / next_noise_std) ** 2 if sums.noise_std else 1.0
    selected = select_columns(residuals, sums.features, noise_std=sums.noise_std)
    features = sums.features[:, selected.columns]
    by_degree, by_class = (sums.explain(residuals, part) for part in (sums.degree, sums.classes))
    by_features = selected.explained
    with_class, with_features = (  # the degree is said beside either
        sums.explain(residuals, np.column_stack([sums.degree, part]))
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
        return ContentDecision(
            projection=None, project_later_hops=False, degree_share=default, relay=True
        )
    pair = DegreeTradeOff(
        degree=by_degree,
        other=by_features if use_projection else by_class,
        both=(with_features if use_projection else with_class).share,
        degree_gain=less_noise / lengths.degree**2,
        other_gain=less_noise / (lengths.features if use_projection else lengths.classes) ** 2,
    )
    return ContentDecision(
        projection=selected.coefficients if use_projection else None,
        project_later_hops=use_projection and by_class.z_score <= MIN_Z_SCORE,
        degree_share=pair.best_share(default) if next_noise_std >= MIN_NOISE else default,
    )
