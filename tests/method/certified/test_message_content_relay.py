"""Relays are chosen where nothing else explains labels, and more often between separated nodes."""

import numpy as np

from vesper.method.certified.evidence import ExplainedShare
from vesper.method.certified.message_content import relay_leads


def explained(share: float, *, signal: float = 0.5, error: float = 1e-4) -> ExplainedShare:
    return ExplainedShare(
        share=share, null_std=5e-4, error=error, coefficients=np.zeros((1, 1)), signal=signal
    )


NOTHING, SOME, ALL = explained(0.0), explained(0.01), explained(0.2)


def test_sums_are_relayed_only_where_nothing_else_explains_anything() -> None:
    assert relay_leads([NOTHING, NOTHING], separated=False)
    assert not relay_leads([ALL, NOTHING], separated=False), "the degree explains labels"
    assert not relay_leads([NOTHING, NOTHING, SOME], separated=False)


def test_sums_are_not_relayed_where_noise_may_hide_other_evidence() -> None:
    assert not relay_leads([explained(0.0, error=0.01)], separated=False)
    assert not relay_leads([explained(0.0, error=1e-3, signal=0.02)], separated=False)


def test_separated_nodes_relay_unless_other_content_leads() -> None:
    assert relay_leads([SOME, SOME], separated=True)
    assert relay_leads([SOME, explained(0.05, error=0.08)], separated=True), "it may be little"
    assert not relay_leads([SOME, explained(0.2, error=0.1)], separated=True), "it seems much"
    assert not relay_leads([ALL, SOME], separated=True)
    assert not relay_leads([NOTHING, SOME, ALL], separated=True)
