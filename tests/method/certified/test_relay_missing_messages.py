"""Silence is concluded from only where something would have been heard."""

import numpy as np

from vesper.method.certified.evidence import ExplainedShare
from vesper.method.certified.relay import explains_nothing, should_relay


def told(share: float, *, signal: float = 0.5, error: float = 1e-4) -> ExplainedShare:
    return ExplainedShare(
        share=share, null_std=5e-4, error=error, coefficients=np.zeros((1, 1)), signal=signal
    )


NOTHING, SOME, ALL = told(0.0), told(0.01), told(0.2)


def test_nothing_is_nothing_where_it_would_have_been_heard() -> None:
    assert explains_nothing(NOTHING)
    assert not explains_nothing(SOME)
    assert not explains_nothing(told(0.0, signal=0.02)), "too much noise to conclude from silence"
    assert not explains_nothing(told(0.0, error=0.01)), "it may be more than it seems"


def test_a_degree_that_tells_is_what_tells() -> None:
    assert should_relay([NOTHING], degree=NOTHING, separated=False)
    assert not should_relay([NOTHING], degree=ALL, separated=False)
    assert not should_relay([NOTHING, SOME], degree=NOTHING, separated=False)


def test_those_kept_apart_hand_on_unless_neighbours_tell_much() -> None:
    assert should_relay([SOME], degree=SOME, separated=True)
    assert should_relay([told(0.05, error=0.02)], degree=SOME, separated=True), "it may be little"
    assert not should_relay([told(0.2, error=0.1)], degree=SOME, separated=True), "it seems much"
    assert not should_relay([SOME], degree=ALL, separated=True)
    assert not should_relay([ALL], degree=NOTHING, separated=True)
    assert not should_relay([SOME, ALL], degree=NOTHING, separated=True)
