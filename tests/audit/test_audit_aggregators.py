"""Audits of every aggregator: below what is certified, near it where the canary shows it all.

| aggregator | what one edge of the small graph shows at most, of epsilon 4 |
| --- | --- |
| gin, gcn, mean | 3.97: all that is certified, but for the grid |
| gat | 3.50: two who lean another way hear each other a little less |
| gcn-clamped | 3.02: the worst degree is one above the clamp, the canary's is below it |
| max | 1.11: a message below the maximum of the others moves nothing |
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
def test_one_release_is_found_within_a_factor_of_two_and_not_beyond(aggregator: str) -> None:
    found = run(aggregator, 16, epsilon=4.0)
    assert found.statistic == "exact likelihood ratio of the releases"
    assert 2.0 < found.epsilon_lower_bound < 4.0
    assert found.verdict == "not refuted"
    assert found.best_possible_epsilon == pytest.approx(BEST[aggregator], rel=0.02)


@pytest.mark.parametrize("aggregator", ["gcn-clamped", "max"])
def test_others_show_less_of_what_was_charged_for(aggregator: str) -> None:
    found = run(aggregator, 6, epsilon=4.0)
    assert found.epsilon_lower_bound < 4.0
    assert found.verdict == "not refuted"
    assert found.best_possible_epsilon == pytest.approx(BEST[aggregator], rel=0.1)


@pytest.mark.nightly
def test_clamped_degrees_are_found_within_a_factor_of_two() -> None:
    assert 2.0 < run("gcn-clamped", 120, epsilon=4.0).epsilon_lower_bound < 4.0


@pytest.mark.parametrize("aggregator", ALL)
def test_a_run_without_noise_is_caught(aggregator: str) -> None:
    trials = 8 if aggregator == "gcn-clamped" else 4  # one canary a run, or twenty
    found = run(aggregator, trials, epsilon=float("inf"), claim=4.0)
    assert (found.plan, found.verdict) == ("none", "refuted")
    assert found.detections == found.observations
    assert found.false_alarms == 0


def test_rows_that_canaries_share_are_told_about_one_canary_at_a_time() -> None:
    assert run("gcn-clamped", 4, epsilon=4.0).canaries == 1
    assert run("gat", 4, epsilon=4.0).canaries == 20
