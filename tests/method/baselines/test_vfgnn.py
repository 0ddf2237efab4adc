"""VFGNN: two accountings, neither certified."""

import math

import pytest

from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.registry import find_method
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.session.config import load_config

SIZES = PublicSizes(num_nodes=50_000, num_train=10_000, num_features=3, num_classes=2)


def plan_of(**settings: object) -> NoisePlan:
    method = find_method("vfgnn")
    known = {"method": "vfgnn", "epsilon": 2.0, "epochs": 9, "max_degree": 20}
    return method.noise_plan(load_config(None, {**known, **settings}), SIZES)


@pytest.mark.parametrize("accounting", ["exact", "as-published"])
@pytest.mark.parametrize("aggregator", ["gin", "gcn"])
def test_is_claimed_and_never_certified(accounting: str, aggregator: str) -> None:
    noise_plan = plan_of(accounting=accounting, aggregator=aggregator)
    assert noise_plan.plan == "paper"
    assert noise_plan.certified_epsilon is None
    assert noise_plan.claimed_epsilon == pytest.approx(2.0, rel=1e-3)
    assert noise_plan.claimed_epsilon is not None
    assert noise_plan.claimed_epsilon <= 2.0 * (1 + 1e-9)
    assert len(noise_plan.noise_stds) == 1
    assert noise_plan.noise_stds[0] > 0


@pytest.mark.parametrize(("aggregator", "rows"), [("gin", 2), ("gcn", 40)])
def test_exact_counts_every_output_of_a_node(aggregator: str, rows: int) -> None:
    """Nine epochs and once more at the end: mu = sqrt(10) 2 C sqrt(rows) / noise_std."""
    noise_plan = plan_of(accounting="exact", aggregator=aggregator, clip=3.0)
    mu = math.sqrt(10) * 2 * 3.0 * math.sqrt(rows) / noise_plan.noise_stds[0]
    assert epsilon_of(mu=mu, delta=1e-6) == pytest.approx(2.0, rel=1e-6)


def test_published_accounting_does_not_see_that_gcn_moves_more_rows() -> None:
    def noise_std(accounting: str, aggregator: str) -> float:
        return plan_of(accounting=accounting, aggregator=aggregator).noise_stds[0]

    assert noise_std("as-published", "gcn") == noise_std("as-published", "gin")
    assert noise_std("exact", "gcn") == pytest.approx(math.sqrt(20) * noise_std("exact", "gin"))
    assert noise_std("as-published", "gcn") < noise_std("exact", "gcn") / 3


def test_deeper_layers_cost_more() -> None:
    for accounting in ("exact", "as-published"):
        one, two = (plan_of(accounting=accounting, hops=hops).noise_stds[0] for hops in (1, 2))
        assert two > 2 * one


def test_without_privacy_there_is_no_noise() -> None:
    noise_plan = plan_of(epsilon=math.inf)
    assert noise_plan.plan == "none"
    assert noise_plan.noise_stds == (0.0,)
