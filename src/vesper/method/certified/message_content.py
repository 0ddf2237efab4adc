"""Choice of what messages contain: one principle, in one pure function.

    rest        labels of training nodes - what their own features explain of them;
                for numbers, positions in their order instead of bins
    candidates  content (classes, a feature projection), each with its best degree share c
    explained   share of the rest that a candidate will explain at the noise of the hop
    lead        what the candidate explains - what the default explains
    chosen      first content, then c: what leads the default by more than its error
    error^2     = (LEAD_ERRORS standard errors of the lead)^2 + (MODEL_ERROR explained by default)^2

The default is classes with the degree share of `method`. Received sums cannot be measured before
anything has been released, so relays have a rule of their own (`relay_leads`): they are expected to
explain a fixed share, small where nothing is known and larger where labelled nodes are connected
through other nodes only; there, relaying is the default.

All of it is post-processing of the release, of features and of shared labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vesper.method.certified.evidence import (
    Doubles,
    ExplainedShare,
    explained_share,
    select_columns,
)
from vesper.method.certified.probe_size import PartLengths
from vesper.party.stage_selection import MARGIN

LEAD_ERRORS = MARGIN
"""Standard errors by which a candidate must lead: as many as a later stage needs to be chosen."""
MODEL_ERROR = 0.03
"""Error of what the default explains, as a share of it: a regression does not show everything that
a network learns from a sum, so small leads are not significant, however many nodes there are."""
RELAY_EXPLAINS = 0.015
"""Share of labels, without noise, that relayed sums are expected to explain."""
SEPARATED_RELAY_EXPLAINS = 0.1
"""The same where labelled nodes are connected through other nodes only."""
BEYOND_CHANCE = 2.5
"""Deviations from chance above which classes explain something, so that later hops contain them."""
DEGREE_SHARES = tuple(k / 20 for k in range(3, 19))
"""Values that the degree share may take."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MessageContent:
    """What messages contain."""

    degree_share: float
    projection: Tensor | None = None  # (components, num_classes)
    """Coefficients of the feature projection, where it replaces classes."""
    project_later_hops: bool = False
    """Whether later hops contain the projection too, because classes explain nothing."""
    relay: bool = False
    """Whether hops pass on received sums."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PartSums:
    """What training nodes received of each part: (num_train, width) each."""

    degree: Doubles
    classes: Doubles
    features: Doubles
    noise_std: float

    def explain(self, rest: Doubles, part: Doubles) -> ExplainedShare:
        """Measure how much of the rest a part explains."""
        return explained_share(rest, part, noise_std=self.noise_std)


def choose_content(
    rest: Doubles,
    sums: PartSums,
    *,
    lengths: PartLengths,
    next_noise_std: float,
    default_share: float,
    shares: Sequence[float] = DEGREE_SHARES,
    separated: bool = False,
    can_relay: bool = False,
) -> MessageContent:
    """Choose between classes, feature projection and relay, and the degree share.

    Args:
        rest: (num_train, targets) what is to be explained.
        sums: what training nodes received.
        lengths: norm of each part in a probe message.
        next_noise_std: noise of the first hop.
        default_share: degree share unless another one leads.
        shares: the other degree shares that are possible.
        separated: labelled nodes are connected through other nodes only.
        can_relay: received sums may be passed on.
    """
    selected = select_columns(rest, sums.features, noise_std=sums.noise_std)
    by_degree, by_class = (sums.explain(rest, part) for part in (sums.degree, sums.classes))
    with_class, with_features = (  # the degree is in messages with either
        sums.explain(rest, np.column_stack([sums.degree, part])).share
        for part in (sums.classes, sums.features[:, selected.columns])
    )
    less_noise = (sums.noise_std / next_noise_std) ** 2 if sums.noise_std else 1.0
    classes, features = (
        Candidate(
            degree=by_degree,
            content=content,
            both=both,
            degree_gain=less_noise / lengths.degree**2,
            content_gain=less_noise / length**2,
        )
        for content, both, length in (
            (by_class, with_class, lengths.classes),
            (selected.explained, with_features - selected.penalty, lengths.features),
        )
    )
    possible = sorted({*shares, default_share})
    chosen = features if features.lead_over(classes, possible) > 0 else classes
    explained = [by_degree, by_class] + [selected.explained] * (chosen is features)
    if can_relay and relay_leads(explained, separated=separated):
        return MessageContent(degree_share=default_share, relay=True)
    return MessageContent(
        degree_share=chosen.best_share(possible, default_share),
        projection=torch.from_numpy(selected.coefficients) if chosen is features else None,
        project_later_hops=chosen is features and by_class.z_score <= BEYOND_CHANCE,
    )


def lead_beyond_error(lead: float, *errors: float, default: float) -> float:
    """Subtract its error from a lead.

    Args:
        lead: over the default.
        errors: independent standard errors of the lead.
        default: what the default explains.

    >>> round(lead_beyond_error(0.05, 0.03, 0.04, default=0.0), 6)
    0.0125
    """
    return lead - math.hypot(LEAD_ERRORS * math.hypot(*errors), MODEL_ERROR * default)


def relay_leads(explained: Sequence[ExplainedShare], *, separated: bool) -> bool:
    """Whether relayed sums are expected to explain more than messages of other content.

    Args:
        explained: what the degree and other contents explain.
        separated: labelled nodes are separated, so relaying is the default and others have to lead.
    """
    most = max(part.without_noise for part in explained)
    error = LEAD_ERRORS * max(part.error / part.signal_fraction for part in explained)
    if separated:
        return most - error < SEPARATED_RELAY_EXPLAINS
    return most + error < RELAY_EXPLAINS


@dataclass(frozen=True)
class Forecast:
    """What messages will explain at the noise of the hop, as a sum of two parts."""

    explained: float
    degree_weight: float
    """Factor between what the degree explains in the probe and in the hop."""
    content_weight: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate:
    """Messages (c, sqrt(1 - c^2) content) with content of one kind.

    Args:
        degree: what the degree explains.
        content: what the content explains.
        both: share that they explain together.
        degree_gain: strength of the degree as the whole message, over that in the probe.
        content_gain: the same for the content.
    """

    degree: ExplainedShare
    content: ExplainedShare
    both: float
    degree_gain: float
    content_gain: float

    def forecast(self, share: float) -> Forecast:
        """Forecast what they explain with this degree share.

        What both explain is counted once, with the part that is received better.
        """
        degree_weight = self.degree.gain(self.degree_gain * share**2)
        content_weight = self.content.gain(self.content_gain * (1 - share**2))
        degree, content = max(self.degree.share, 0.0), max(self.content.share, 0.0)
        both = max(self.both, 0.0)
        explained = max(
            degree_weight * degree + content_weight * max(both - degree, 0.0),
            content_weight * content + degree_weight * max(both - content, 0.0),
        )
        return Forecast(explained, degree_weight, content_weight)

    def best_forecast(self, shares: Sequence[float]) -> Forecast:
        """Forecast with the degree share that explains most."""
        return max(map(self.forecast, shares), key=lambda forecast: forecast.explained)

    def lead_over(self, default: "Candidate", shares: Sequence[float]) -> float:
        """Return the lead over the default content, less its error; each with its best share."""
        ours, theirs = self.best_forecast(shares), default.best_forecast(shares)
        return lead_beyond_error(
            ours.explained - theirs.explained,
            self.degree.error * (ours.degree_weight - theirs.degree_weight),
            self.content.error * ours.content_weight,
            default.content.error * theirs.content_weight,
            default=theirs.explained,
        )

    def best_share(self, shares: Sequence[float], default: float) -> float:
        """Choose the degree share: the default unless another one leads."""
        usual = self.forecast(default)

        def lead(share: float) -> float:
            forecast = self.forecast(share)
            return lead_beyond_error(
                forecast.explained - usual.explained,
                self.degree.error * (forecast.degree_weight - usual.degree_weight),
                self.content.error * (forecast.content_weight - usual.content_weight),
                default=usual.explained,
            )

        best = max(shares, key=lead)
        return best if lead(best) > 0 else default
