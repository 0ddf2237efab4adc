"""The degree share depends on what the degree explains, compared with the content."""

import numpy as np
import pytest

from vesper.method.certified.evidence import ExplainedShare
from vesper.method.certified.message_content import DEGREE_SHARES, Candidate, lead_beyond_error

LEAST, MOST = DEGREE_SHARES[0], DEGREE_SHARES[-1]


def part(share: float, *, signal: float = 0.01, error: float = 1e-3) -> ExplainedShare:
    return ExplainedShare(
        share=share, null_std=1e-4, error=error, coefficients=np.ones((1, 2)), signal=signal
    )


def best_share(
    degree: ExplainedShare, content: ExplainedShare, default: float, *, both: float | None = None
) -> float:
    total = degree.share + content.share if both is None else both
    candidate = Candidate(
        degree=degree, content=content, both=total, degree_gain=8.0, content_gain=8 / 3
    )
    return candidate.best_share(sorted({*DEGREE_SHARES, default}), default)


def test_a_part_gets_nearly_all_where_the_other_explains_nothing() -> None:
    assert best_share(part(0.05), part(0.0), 0.6) == MOST
    assert best_share(part(0.0), part(0.05), 0.6) == LEAST


@pytest.mark.parametrize("default", [0.3, 0.6])
def test_the_default_is_chosen_where_nothing_is_explained_beyond_error(default: float) -> None:
    assert best_share(part(0.0), part(0.0), default) == default
    assert best_share(part(-0.01), part(-0.01), default) == default
    assert best_share(part(0.002, error=0.01), part(0.004, error=0.01), default) == default


def test_the_default_is_chosen_where_parts_are_received_without_noise() -> None:
    """Once hardly any noise is left, a lead is smaller than the error of the model."""
    assert best_share(part(0.05, signal=50.0), part(0.2, signal=50.0), 0.6) == 0.6
    assert best_share(part(0.1, signal=np.inf), part(0.1, signal=np.inf), 0.3) == 0.3


def test_a_message_has_both_parts_where_both_explain_labels() -> None:
    assert LEAST < best_share(part(0.1, signal=0.3), part(0.1, signal=0.3), 0.3) < MOST


def test_what_both_parts_explain_is_counted_once() -> None:
    """Sums of classes contain the degree too, where classes are rare: then the degree is enough."""
    separate = best_share(part(0.1), part(0.06), 0.3)
    shared = best_share(part(0.1), part(0.06), 0.3, both=0.1)
    assert shared == MOST >= separate


@pytest.mark.parametrize("default", [0.0, 1.0])
def test_a_default_share_may_leave_nothing_to_one_part(default: float) -> None:
    for signal in (0.01, np.inf):
        chosen = best_share(part(0.05, signal=signal), part(0.05, signal=signal), default)
        assert 0 <= chosen <= 1
    assert best_share(part(0.0), part(0.0), default) == default


def test_a_lead_has_to_exceed_the_error_of_the_model_too() -> None:
    assert lead_beyond_error(0.02, 1e-6, default=0.5) > 0
    assert lead_beyond_error(0.01, 1e-6, default=0.5) < 0
