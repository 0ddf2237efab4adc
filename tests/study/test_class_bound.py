"""The bound is exact where it can be computed by hand; tests/errata/test_limits.py has the rest."""

import numpy as np
import pytest

from vesper.study.class_bound import accuracy_bound, gcn_rows, gin_rows
from vesper.study.paper_nodes import PAPER_NODES

REDDIT = PAPER_NODES["reddit"]


def test_without_signal_only_the_largest_class_is_right() -> None:
    bound = accuracy_bound(np.array([0.5, 0.3, 0.2]), np.array([0.0]), np.array([1.0]))
    assert bound == pytest.approx(0.5, abs=1e-3)


def test_it_rises_with_the_signal_and_stays_below_one() -> None:
    shares, one = np.full(10, 0.1), np.array([1.0])
    bounds = [accuracy_bound(shares, np.array([shift]), one) for shift in (0.1, 1.0, 3.0, 30.0)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == pytest.approx(1.0, abs=1e-9)


def test_rows_have_the_norms_and_shares_of_their_degrees() -> None:
    rows = gin_rows(REDDIT, max_degree=20)
    assert rows.norms[-1] == 21.0
    assert rows.free_share == pytest.approx(0.0, abs=1e-12)
    truncated = gcn_rows(REDDIT, max_degree=20, min_degree=10, senders="promise")
    assert truncated.degrees[0] == 10
    assert truncated.norms[0] == pytest.approx(1.0)
    assert truncated.free_share == pytest.approx(0.057, abs=0.001)
