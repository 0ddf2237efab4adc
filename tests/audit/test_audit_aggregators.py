"""Audits of every aggregator: below the certified epsilon, near it for worst-case canaries.

| aggregator | most that one edge of the small graph can reveal, of epsilon 4 |
| --- | --- |
| gin, gcn, mean | 3.97: all of it, up to rounding to the grid |
| gat | 3.50: nodes with different queries and keys weigh each other a little less |
| gcn-clamped | 3.02: the worst degree is one above the clamp, the canary's is below it |
| max | 1.11: a message below the maximum of the others changes nothing |
"""

from typing import Any

import pytest

from vesper.audit.audit import AuditResult
from vesper.audit.command import run_audit
from vesper.method.options import AGGREGATORS_OF_METHOD

ALL = AGGREGATORS_OF_METHOD["certified"]
BEST = {"gin": 3.97, "gcn": 3.97, "mean": 3.97, "gat": 3.50, "gcn-clamped": 3.02, "max": 1.11}


def run(aggregator: str, trials: int, **given: Any) -> AuditResult:
    claim = given.pop("claim", None)
    settings = {"method": "certified", "hops": 1, "seed": 3, "aggregator": aggregator, **given}
    return run_audit(settings, trials=trials, claim=claim)


@pytest.mark.parametrize("aggregator", ["mean", "gat"])
def test_the_bound_for_one_release_is_within_a_factor_of_two_of_epsilon(aggregator: str) -> None:
    result = run(aggregator, 16, epsilon=4.0)
    assert result.statistic == "exact likelihood ratio of the releases"
    assert 2.0 < result.epsilon_lower_bound < 4.0
    assert result.verdict == "not refuted"
    assert result.best_possible_epsilon == pytest.approx(BEST[aggregator], rel=0.02)


@pytest.mark.parametrize("aggregator", ["gcn-clamped", "max"])
def test_other_aggregators_leak_less_than_was_charged(aggregator: str) -> None:
    result = run(aggregator, 6, epsilon=4.0)
    assert result.epsilon_lower_bound < 4.0
    assert result.verdict == "not refuted"
    assert result.best_possible_epsilon == pytest.approx(BEST[aggregator], rel=0.1)


@pytest.mark.nightly
def test_the_bound_for_clamped_degrees_is_within_a_factor_of_two() -> None:
    assert 2.0 < run("gcn-clamped", 120, epsilon=4.0).epsilon_lower_bound < 4.0


@pytest.mark.parametrize("aggregator", ALL)
def test_a_run_without_noise_is_detected(aggregator: str) -> None:
    trials = 8 if aggregator == "gcn-clamped" else 4  # one canary per run, or twenty
    result = run(aggregator, trials, epsilon=float("inf"), claim=4.0)
    assert (result.plan, result.verdict) == ("none", "refuted")
    assert result.detections == result.observations
    assert result.false_alarms == 0


def test_aggregators_whose_canaries_share_rows_use_one_canary() -> None:
    assert run("gcn-clamped", 4, epsilon=4.0).canaries == 1
    assert run("gat", 4, epsilon=4.0).canaries == 20
