"""Silence is concluded from only where something would have been heard."""

import numpy as np

from vesper.method.certified.evidence import Explained
from vesper.method.certified.relay import is_relayed, told_nothing


def told(share: float, *, signal: float = 0.5, error: float = 1e-4) -> Explained:
    return Explained(
        share=share, chance=5e-4, error=error, coefficients=np.zeros((1, 1)), signal=signal
    )


NOTHING, SOME, ALL = told(0.0), told(0.01), told(0.2)


def test_nothing_is_nothing_where_it_would_have_been_heard() -> None:
    assert told_nothing(NOTHING)
    assert not told_nothing(SOME)
    assert not told_nothing(told(0.0, signal=0.02)), "too much noise to conclude from silence"
    assert not told_nothing(told(0.0, error=0.01)), "it may be more than it seems"


def test_a_degree_that_tells_is_what_tells() -> None:
    assert is_relayed([NOTHING], degree=NOTHING, kept_apart=False)
    assert not is_relayed([NOTHING], degree=ALL, kept_apart=False)
    assert not is_relayed([NOTHING, SOME], degree=NOTHING, kept_apart=False)


def test_those_kept_apart_hand_on_unless_neighbours_tell_much() -> None:
    assert is_relayed([SOME], degree=SOME, kept_apart=True)
    assert is_relayed([told(0.05, error=0.02)], degree=SOME, kept_apart=True), "it may be little"
    assert not is_relayed([told(0.2, error=0.1)], degree=SOME, kept_apart=True), "it seems much"
    assert not is_relayed([SOME], degree=ALL, kept_apart=True)
    assert not is_relayed([ALL], degree=NOTHING, kept_apart=True)
    assert not is_relayed([SOME, ALL], degree=NOTHING, kept_apart=True)
