"""How large the probe is: its share of the budget, and how its messages are divided.

    share    = 0.01 for label reach, and for the content of messages
               min(0.1, ENOUGH_EVIDENCE max(noise, 1)^2 / num_train),  or 0 if that is too little
    message  = (p [labelled], a, b class row, c feature components),      p^2 + a^2 + b^2 + c^2 = 1

All of it follows from epsilon, delta and public sizes.
"""

import math
from dataclasses import dataclass

from vesper.method.certified.query_nodes import LABEL_REACH_SHARE
from vesper.model.principal_components import COMPONENTS

MAX_CONTENT_SHARE = 0.1
"""Largest share of the budget for deciding the content of messages."""
ENOUGH_EVIDENCE = 250.0
"""Share times training nodes over squared noise, above which a smaller share suffices. Noise below
1 counts as 1: hops then have enough budget, so a smaller share would gain nothing."""
MIN_EVIDENCE = 5.0
"""The same, at the largest share, below which the probe would show too little and only measures
label reach."""
NODES_PER_COLUMN = 6
"""Training nodes for each released column: with fewer, regressions fit noise."""
TYPICAL_DEGREE = 10
"""Number of neighbours assumed before any edge is read."""
TYPICAL_SHARE = 0.3
"""Share of labels that an informative sum is assumed to explain without noise."""


def content_share(noise_std: float, *, num_train: int, num_classes: int) -> float:
    """Return the share of the budget for deciding message content, in addition to label reach.

    Args:
        noise_std: noise with which one release would use up the budget; 0 without privacy.
        num_train: number of training nodes.
        num_classes: number of classes.

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
    """Return the share of the budget that the whole probe takes."""
    return LABEL_REACH_SHARE + content_share(
        noise_std, num_train=num_train, num_classes=num_classes
    )


@dataclass(frozen=True, kw_only=True)
class PartLengths:
    """Norm of each part of a probe message; together they have norm 1."""

    label_reach: float
    degree: float
    classes: float
    features: float

    @classmethod
    def for_share(cls, share: float) -> "PartLengths":
        """Divide a message whose content takes this share of the budget; 0: label reach alone.

        Label reach gets its fixed share. Of the rest, features get half, since their sums are not
        used again, and classes more than the degree, which is a single number.
        """
        label_reach = LABEL_REACH_SHARE / (LABEL_REACH_SHARE + share)
        degree, classes, features = (
            math.sqrt((1 - label_reach) * part) for part in (1 / 8, 3 / 8, 1 / 2)
        )
        return cls(
            label_reach=math.sqrt(label_reach), degree=degree, classes=classes, features=features
        )


def feature_evidence(num_train: int, *, lengths: PartLengths, noise_std: float) -> float:
    """Return the squared z-score that a fully informative feature column would reach."""
    if noise_std == 0:
        return math.inf
    return TYPICAL_DEGREE * TYPICAL_SHARE * num_train * (lengths.features / noise_std) ** 2
