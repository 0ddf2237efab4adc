"""Division of a budget: a small share for the probe, which is very noisy, and the rest.

1 / whole^2  =  1 / small^2 + 1 / rest^2          mu^2 adds up and is proportional to 1 / noise^2
small        =  whole / sqrt(share)               capped at the largest noise that can be drawn

A worthwhile share may depend on `whole`: the more noise, the larger the share needed to learn
anything from the probe.
"""

import math
from collections.abc import Callable

from vesper.privacy.events import LARGEST_NOISE

ROUND_UP = 1 + 2.0**-40
MAX_ITERATIONS = 60

ProbeShare = Callable[[float], float]
"""Maps the noise with which one release would use up the budget to the share of the probe."""


def no_probe(whole: float) -> float:
    """Share of 0: no probe."""
    return 0.0


def share_from_rest(rest: float, probe_share: ProbeShare) -> float:
    """Find the share from the noise of the rest; the larger one if there are two.

    >>> share_from_rest(3.0, lambda whole: whole / 100) == 3.0 * (1 - share_from_rest(
    ...     3.0, lambda whole: whole / 100)) ** 0.5 / 100
    True
    """
    share = probe_share(rest / 2)
    for _ in range(MAX_ITERATIONS):
        before, share = share, probe_share(rest * math.sqrt(1 - share))
        if share == before:
            break
    return share


def split_probe_noise(whole: float, *, share: float) -> tuple[float | None, float]:
    """Return the noise of the probe, which takes `share` of the budget, and of the rest together.

    Args:
        whole: noise with which one release would use up the budget.
        share: share of the budget, at least 0 (no probe) and below 1.

    >>> small, rest = split_probe_noise(2.0, share=0.01)
    >>> round(small, 6), round(rest, 4)
    (20.0, 2.0101)
    >>> split_probe_noise(2.0, share=0.0)
    (None, 2.0)
    """
    if share == 0 or whole >= LARGEST_NOISE:
        return None, whole
    small = min(whole / math.sqrt(share) * ROUND_UP, LARGEST_NOISE)
    # The probe takes more than its share if that much noise cannot be drawn.
    return small, whole / math.sqrt(1 - (whole / small) ** 2)


def probe_noise_from_rest(rest: float, *, share: float) -> float | None:
    """Return the noise of the probe from the noise of the rest: inverse of `split_probe_noise`.

    >>> probe_noise_from_rest(split_probe_noise(2.0, share=0.01)[1], share=0.01) >= 20.0
    True
    """
    if share == 0:
        return None
    return min(rest * math.sqrt((1 - share) / share) * ROUND_UP, LARGEST_NOISE)
