"""Do nodes know one another through others only? What the trial says of it.

    kept apart    speakers hardly hear a speaker, the degree explains less than MUCH of labels, and
                  so does, as far as can be told, what neighbours say of themselves
    told nothing  that explains less than LITTLE beyond doubt, though what tells would have been
                  heard, and the degree less than TELLING

Then neighbours hand on what they have heard (`method.handing_on`). In the second case nothing is
known of what they have heard, but nothing is lost by it either.
"""

from collections.abc import Sequence

from vesper.method.explained import FAINTEST, Explained

MUCH = 0.1
"""Of labels; it may be a chance of what the few say through whom many know one another."""
TELLING = 0.05
"""Of labels, that something which tells explains without noise."""
LITTLE = 0.015
"""Of labels."""
HEARD = 15.0
"""Deviations of chance with which something that tells would be heard, to conclude from silence."""
DOUBT = 2.0
"""Errors by which a share may be larger, or smaller, than it seems."""


def is_relayed(told: Sequence[Explained], *, degree: Explained, kept_apart: bool) -> bool:
    """Whether neighbours should hand on what they have heard.

    Args:
        told: what they say of themselves explains, beside the degree.
        degree: what that explains.
        kept_apart: speakers hardly hear a speaker (`method.apart`).
    """
    most = MUCH if kept_apart else TELLING
    if degree.less(degree.error).without_noise >= most:
        return False  # it is in every message, and would have to share it with more
    return all(told_little(part) if kept_apart else told_nothing(part) for part in told)


def told_little(part: Explained) -> bool:
    """Whether a part may explain less than MUCH, and seems to explain less than twice that."""
    least = part.less(DOUBT * part.error).without_noise
    return least < MUCH and part.without_noise < 2 * MUCH


def told_nothing(part: Explained) -> bool:
    """Whether a part tells nothing, although it would have been heard."""
    would_be_heard = part.signal > FAINTEST and TELLING * part.heard > HEARD * part.chance
    return would_be_heard and part.less(-DOUBT * part.error).without_noise < LITTLE
