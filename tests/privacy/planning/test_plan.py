import math

import pytest
from scipy import stats

from vesper.errors import InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import Event, GaussianRelease, PureRelease
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.reader import Entry
from vesper.privacy.ledger.receipt import encode
from vesper.privacy.planning.plan import guarantee, make_plan
from vesper.privacy.planning.traffic import TrafficSizes

PRODUCTS = TrafficSizes(
    num_nodes=2_449_029, num_train_nodes=196_615, num_val_nodes=39_323, num_classes=47
)


def entry_of(event: Event, *, sequence: int) -> Entry:
    """A charge to all of three nodes."""
    facts = dict(event.facts)
    return Entry(sequence, 0.0, "graph", "run", facts, event.cost, encode(None, 3))


def test_planning_from_epsilon_and_from_noise_agree() -> None:
    from_epsilon = make_plan(epsilon=2.0, delta=1e-6, hops=2, refreshes=3)
    assert from_epsilon.certified.releases == 6
    from_noise = make_plan(
        noise_std=from_epsilon.certified.noise_std, delta=1e-6, hops=2, refreshes=3
    )
    assert from_noise.certified == from_epsilon.certified
    assert 0.999 * 2.0 <= from_epsilon.certified.epsilon <= 2.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_histogram_is_paid_from_the_same_budget(epsilon: float) -> None:
    without = make_plan(epsilon=epsilon, delta=1e-6, hops=2)
    plan = make_plan(epsilon=epsilon, delta=1e-6, hops=2, degrees_epsilon=epsilon / 10)
    assert plan.certified.noise_std > without.certified.noise_std
    assert 0.999 * epsilon <= plan.certified.epsilon <= epsilon
    # the ledger admits exactly these releases
    ledger = Balance("graph", num_nodes=3, budget=Budget(epsilon=epsilon, delta=1e-6))
    ledger.book(entry_of(PureRelease(epsilon=epsilon / 10, what="degrees"), sequence=1))
    event = GaussianRelease(noise_std=plan.certified.noise_std)
    assert ledger.fits(event) == 2
    assert ledger.fits(GaussianRelease(noise_std=plan.certified.noise_std * 0.999)) == 1
    for sequence in (2, 3):
        ledger.book(entry_of(event, sequence=sequence))
    assert ledger.spent_epsilon() == pytest.approx(plan.certified.epsilon, rel=1e-9)
    spent = 2 / plan.certified.noise_std**2 + PureRelease(epsilon=epsilon / 10, what="").cost
    assert plan.certified.mu == pytest.approx(math.sqrt(2 * spent), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 4.0, 32.0])
def test_a_probe_is_paid_from_the_same_budget(epsilon: float) -> None:
    without = make_plan(epsilon=epsilon, delta=1e-6, hops=3)
    plan = make_plan(epsilon=epsilon, delta=1e-6, hops=3, probe_share=lambda whole: 0.01)
    assert without.certified.probe_noise_std is None
    probe_noise_std, noise_std = plan.certified.probe_noise_std, plan.certified.noise_std
    assert probe_noise_std is not None
    assert noise_std > without.certified.noise_std
    assert 0.999 * epsilon <= plan.certified.epsilon <= epsilon
    back = make_plan(noise_std=noise_std, delta=1e-6, hops=3, probe_share=lambda whole: 0.01)
    assert back.certified == plan.certified
    # the ledger admits exactly these releases
    ledger = Balance("graph", num_nodes=3, budget=Budget(epsilon=epsilon, delta=1e-6))
    ledger.book(entry_of(GaussianRelease(noise_std=probe_noise_std), sequence=1))
    assert ledger.fits(GaussianRelease(noise_std=noise_std)) == 3
    assert ledger.fits(GaussianRelease(noise_std=noise_std * 0.999)) == 2
    assert next(p.releases for p in plan.phases if p.name == "training") == 4


def test_phases_follow_the_steps_of_a_user() -> None:
    plan = make_plan(epsilon=1.0, delta=1e-6, hops=3, degrees_epsilon=0.1, sizes=PRODUCTS)
    assert [(phase.name, phase.releases) for phase in plan.phases] == [
        ("degree histogram", 1),
        ("training", 3),
        ("validation", 0),
        ("inference", 0),
    ]
    histogram, training, validation, inference = plan.phases
    assert histogram.epsilon == histogram.epsilon_so_far == 0.1
    alone = guarantee(noise_std=plan.certified.noise_std, releases=3, delta=1e-6)
    assert training.epsilon == alone.epsilon
    assert training.epsilon < plan.certified.epsilon == training.epsilon_so_far
    for free in (validation, inference):
        assert free.epsilon == 0
        assert free.epsilon_so_far == plan.certified.epsilon
    assert plan.planned_traffic is not None
    assert all(phase.traffic == plan.planned_traffic.by_phase[phase.name] for phase in plan.phases)


def test_one_more_release_costs_more_and_reveals_more() -> None:
    plan = make_plan(epsilon=1.0, delta=1e-6, hops=3)
    more, now = plan.one_more_release, plan.certified
    assert more.releases == 4
    assert more.mu == pytest.approx(now.mu * math.sqrt(4 / 3))
    assert more.epsilon > 1.0 >= now.epsilon
    assert more.attack_accuracy > now.attack_accuracy
    assert more.detection_at_one_percent > now.detection_at_one_percent


def test_the_best_guess_is_that_of_the_likelihood_ratio() -> None:
    plan = make_plan(noise_std=1.5, delta=1e-6, hops=1)
    mu = math.sqrt(2) / 1.5
    assert plan.certified.mu == pytest.approx(mu)
    # accept the edge when the projected release passes half way, or passes the 99 % point
    without, with_edge = stats.norm(0, 1), stats.norm(mu, 1)
    right = (without.cdf(mu / 2) + with_edge.sf(mu / 2)) / 2
    assert plan.certified.attack_accuracy == pytest.approx(right)
    assert plan.certified.detection_at_one_percent == pytest.approx(with_edge.sf(without.isf(0.01)))


def test_sizes_add_the_papers_claim_and_the_traffic() -> None:
    bare = make_plan(epsilon=1.0, delta=8.08e-9, hops=2)
    assert bare.claimed is None
    assert bare.claimed_omitted == "it needs the number of training nodes"
    assert bare.planned_traffic is None
    plan = make_plan(epsilon=1.0, delta=8.08e-9, hops=2, sizes=PRODUCTS)
    assert plan.claimed is not None
    assert plan.claimed_omitted is None
    assert plan.claimed.noise_std == pytest.approx(72.5, rel=0.002)
    assert plan.certified.noise_std == pytest.approx(10.3, rel=0.005)


def test_either_noise_or_a_valid_budget_is_required() -> None:
    with pytest.raises(TypeError, match="epsilon or noise_std"):
        make_plan(delta=1e-6, hops=1)
    with pytest.raises(InputError):
        make_plan(epsilon=-1.0, delta=1e-6, hops=1)


def test_noise_that_cannot_be_drawn_is_not_planned() -> None:
    with pytest.raises(InputError, match="larger epsilon or fewer releases"):
        make_plan(epsilon=1e-3, delta=1e-12, hops=20)
    with pytest.raises(InputError, match="noise between"):
        make_plan(noise_std=0.0, delta=1e-6, hops=1)
    with pytest.raises(InputError, match="degree histogram"):
        make_plan(epsilon=1.0, delta=1e-6, hops=1, degrees_epsilon=1.0)
