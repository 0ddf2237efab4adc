"""That a part explains nothing is concluded only where more would have been detected."""

import numpy as np

from vesper.method.certified.evidence import ExplainedShare
from vesper.method.certified.relay import explains_nothing, should_relay


def explained(share: float, *, signal: float = 0.5, error: float = 1e-4) -> ExplainedShare:
    return ExplainedShare(
        share=share, null_std=5e-4, error=error, coefficients=np.zeros((1, 1)), signal=signal
    )


NOTHING, SOME, ALL = explained(0.0), explained(0.01), explained(0.2)


def test_nothing_is_concluded_only_where_more_would_be_detected() -> None:
    assert explains_nothing(NOTHING)
    assert not explains_nothing(SOME)
    assert not explains_nothing(explained(0.0, signal=0.02)), "too much noise for a conclusion"
    assert not explains_nothing(explained(0.0, error=0.01)), "it may be more than it seems"


def test_an_informative_degree_prevents_a_relay() -> None:
    assert should_relay([NOTHING], degree=NOTHING, separated=False)
    assert not should_relay([NOTHING], degree=ALL, separated=False)
    assert not should_relay([NOTHING, SOME], degree=NOTHING, separated=False)


def test_separated_nodes_relay_unless_neighbours_explain_much() -> None:
    assert should_relay([SOME], degree=SOME, separated=True)
    assert should_relay([explained(0.05, error=0.02)], degree=SOME, separated=True), (
        "it may be little"
    )
    assert not should_relay([explained(0.2, error=0.1)], degree=SOME, separated=True), (
        "it seems much"
    )
    assert not should_relay([SOME], degree=ALL, separated=True)
    assert not should_relay([ALL], degree=NOTHING, separated=True)
    assert not should_relay([SOME, ALL], degree=NOTHING, separated=True)
