"""The degree share follows what the degree explains beside the rest of a message."""

import numpy as np
import pytest

from vesper.method.certified.evidence import ExplainedShare
from vesper.method.certified.probe_decision import DEGREE_SHARES, DegreeTradeOff

LEAST, MOST = DEGREE_SHARES[0], DEGREE_SHARES[-1]


def share_of(share: float, *, signal: float = 0.01, chance: float = 1e-4) -> ExplainedShare:
    return ExplainedShare(
        share=share, null_std=chance, error=1e-3, coefficients=np.ones((1, 2)), signal=signal
    )


def pair(
    degree: ExplainedShare, other: ExplainedShare, both: float | None = None
) -> DegreeTradeOff:
    total = degree.share + other.share if both is None else both
    return DegreeTradeOff(degree=degree, other=other, both=total, degree_gain=8.0, other_gain=8 / 3)


def test_what_explains_alone_gets_nearly_all() -> None:
    assert pair(share_of(0.05), share_of(0.0)).best_share(0.6) == MOST
    assert pair(share_of(0.0), share_of(0.05)).best_share(0.6) == LEAST


@pytest.mark.parametrize("default", [0.3, 0.6])
def test_where_nothing_explains_or_all_is_chance_the_default_stays(default: float) -> None:
    assert pair(share_of(0.0), share_of(0.0)).best_share(default) == default
    assert pair(share_of(-0.01), share_of(-0.01)).best_share(default) == default
    seeming = pair(share_of(0.002, chance=0.002), share_of(0.004, chance=0.002))
    assert seeming.best_share(default) == default


def test_what_is_heard_well_already_needs_no_more() -> None:
    """Once hardly any noise is left, both are heard whatever their shares."""
    loud = pair(share_of(0.05, signal=50.0), share_of(0.2, signal=50.0))
    assert loud.best_share(0.6) == 0.6
    assert pair(share_of(0.1, signal=np.inf), share_of(0.1, signal=np.inf)).best_share(0.3) == 0.3


def test_both_are_served_where_both_explain() -> None:
    even = pair(share_of(0.1, signal=0.3), share_of(0.1, signal=0.3))
    assert LEAST < even.best_share(0.3) < MOST


def test_what_both_tell_is_counted_once() -> None:
    """Sums of classes tell the degree too, where classes are rare: then the degree is enough."""
    apart = pair(share_of(0.1), share_of(0.06)).best_share(0.3)
    same = pair(share_of(0.1), share_of(0.06), both=0.1).best_share(0.3)
    assert same == MOST >= apart


@pytest.mark.parametrize("default", [0.0, 1.0])
def test_shares_that_leave_nothing_to_one_part_are_no_trouble(default: float) -> None:
    for signal in (0.01, np.inf):
        made = pair(share_of(0.05, signal=signal), share_of(0.05, signal=signal))
        assert 0 <= made.best_share(default) <= 1
    assert pair(share_of(0.0), share_of(0.0)).best_share(default) == default
