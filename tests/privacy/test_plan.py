import math

import pytest
from scipy import stats

from vesper.errors import InputError
from vesper.privacy.plan import Sizes, make_plan


def test_both_directions_agree() -> None:
    forth = make_plan(epsilon=2.0, delta=1e-6, hops=2, refreshes=3)
    assert forth.certified.releases == 6
    back = make_plan(noise_std=forth.certified.noise_std, delta=1e-6, hops=2, refreshes=3)
    assert back.certified == forth.certified
    assert 0.999 * 2.0 <= forth.certified.epsilon <= 2.0


def test_phases_end_at_the_whole_and_one_more_costs_more() -> None:
    plan = make_plan(epsilon=1.0, delta=1e-6, hops=3)
    assert [phase.releases for phase in plan.phases] == [1, 2, 3]
    assert plan.phases[-1] == plan.certified
    epsilons = [phase.epsilon for phase in (*plan.phases, plan.one_more_release)]
    assert epsilons == sorted(epsilons)
    assert plan.one_more_release.epsilon > 1.0


def test_the_best_guess_is_that_of_the_likelihood_ratio() -> None:
    plan = make_plan(noise_std=1.5, delta=1e-6, hops=1)
    mu = math.sqrt(2) / 1.5
    assert plan.certified.mu == pytest.approx(mu)
    assert plan.certified.attack_accuracy == pytest.approx(stats.norm.cdf(mu / 2))


def test_sizes_bring_the_paper_and_the_wire() -> None:
    bare = make_plan(epsilon=1.0, delta=8.08e-9, hops=2)
    assert bare.claimed is None
    assert bare.wire is None
    sizes = Sizes(num_nodes=2_449_029, num_train_nodes=196_615, num_classes=47)
    plan = make_plan(epsilon=1.0, delta=8.08e-9, hops=2, sizes=sizes)
    assert plan.claimed is not None
    assert plan.claimed.noise_std == pytest.approx(72.5, rel=0.002)
    assert plan.certified.noise_std == pytest.approx(10.3, rel=0.005)
    assert plan.wire is not None
    assert plan.wire.per_batch_each_way == 256 * 47 * 3 * 4


def test_neither_noise_nor_budget() -> None:
    with pytest.raises(TypeError, match="epsilon or noise_std"):
        make_plan(delta=1e-6, hops=1)
    with pytest.raises(InputError):
        make_plan(epsilon=-1.0, delta=1e-6, hops=1)


def test_noise_that_cannot_be_drawn_is_not_planned() -> None:
    with pytest.raises(InputError, match="larger epsilon or fewer releases"):
        make_plan(epsilon=1e-3, delta=1e-12, hops=20)
    with pytest.raises(InputError, match="noise_std between"):
        make_plan(noise_std=0.0, delta=1e-6, hops=1)


def test_many_releases_are_not_listed_one_by_one() -> None:
    plan = make_plan(epsilon=100.0, delta=1e-6, hops=3, refreshes=10_000)
    assert len(plan.phases) == 12
    assert plan.phases[-1].releases == 30_000
