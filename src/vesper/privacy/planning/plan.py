"""A plan before there is data: noise, cost of each phase, and what one more release would reveal.

    releases  = hops * refreshes                       each to every node, each at noise_std
    spent     = releases / noise_std^2 + 1 / probe_noise_std^2
    epsilon   = epsilon of the degree histogram, which comes first, plus epsilon of
                mu = sqrt(2 spent)                     (R-SUM, L-FILTER: counts first)
    mu^2      = 2 spent + mu^2 of the histogram        (PURE-TO-GDP)
    accuracy  = Phi(mu / 2)                            of the best guess whether one edge exists
    detection = Phi(mu + Phi^-1(1 %))                  share of edges, at 1 % false alarms

The last two lines bound what a label party can achieve that knows everything except the edge.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

from vesper.errors import InputError
from vesper.privacy.accounting.budget import Budget, require_finite
from vesper.privacy.accounting.participation import charge_of, mu_for, noise_std_for, spent_epsilon
from vesper.privacy.accounting.pure import charge_of_pure
from vesper.privacy.accounting.safe_numbers import float_down, float_up
from vesper.privacy.events import LARGEST_NOISE, SMALLEST_NOISE
from vesper.privacy.planning.paper_plan import PaperClaim, PaperSizes, paper_claim_for
from vesper.privacy.planning.probe_share import (
    ROUND_UP,
    ProbeShare,
    no_probe,
    probe_noise_from_rest,
    share_from_rest,
    split_probe_noise,
)
from vesper.privacy.planning.traffic import (
    PlannedTraffic,
    Traffic,
    TrafficSizes,
    planned_traffic_of,
)

FALSE_ALARMS = 0.01


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """Guarantee after `releases` releases, and a degree histogram and a probe if there are any.

    `epsilon` is what the ledger will show; `mu` bounds what an attack can achieve.
    """

    releases: int
    noise_std: float
    probe_noise_std: float | None
    mu: float
    epsilon: float
    delta: float
    attack_accuracy: float
    detection_at_one_percent: float


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One step of a user; `epsilon` is its own, `epsilon_so_far` includes the phases before it.

    A phase without releases works on values released before and costs nothing.
    """

    name: str
    releases: int
    epsilon: float
    epsilon_so_far: float
    traffic: Traffic | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The whole plan; a part that cannot be computed is None, and `claimed_omitted` says why."""

    certified: Guarantee
    phases: tuple[Phase, ...]
    one_more_release: Guarantee
    claimed: PaperClaim | None
    claimed_omitted: str | None
    planned_traffic: PlannedTraffic | None


def guarantee(
    *,
    noise_std: float,
    releases: int,
    delta: float,
    probe_noise_std: float | None = None,
    degrees_epsilon: float = 0.0,
) -> Guarantee:
    """Account for releases of equal noise to the same nodes, a probe, and a degree histogram."""
    spent = releases * charge_of(noise_std=noise_std)
    if probe_noise_std is not None:
        spent += charge_of(noise_std=probe_noise_std)
    mu = mu_for(spent=spent + charge_of_pure(epsilon=degrees_epsilon))
    epsilon = spent_epsilon(spent=spent, delta=delta) if spent else 0.0
    normal = NormalDist()
    return Guarantee(
        releases=releases,
        noise_std=noise_std,
        probe_noise_std=probe_noise_std,
        mu=mu,
        epsilon=float_up(Fraction(epsilon) + Fraction(degrees_epsilon)),
        delta=delta,
        attack_accuracy=normal.cdf(mu / 2),
        detection_at_one_percent=normal.cdf(mu + normal.inv_cdf(FALSE_ALARMS)),
    )


def make_plan(
    *,
    delta: float,
    hops: int,
    refreshes: int = 1,
    epsilon: float | None = None,
    noise_std: float | None = None,
    probe_share: ProbeShare = no_probe,
    degrees_epsilon: float = 0.0,
    sizes: TrafficSizes | None = None,
) -> Plan:
    """Plan from a budget to the noise, or from the noise to epsilon.

    Args:
        delta: a public constant.
        hops: number of hops, each released `refreshes` times.
        refreshes: releases per hop.
        epsilon: the budget for everything; determines the noise.
        noise_std: noise of each release; determines epsilon.
        probe_share: share of the budget of all releases that the probe takes.
        degrees_epsilon: what a degree histogram may cost; 0 for none.
        sizes: public sizes, for the traffic and for what the paper would claim.

    Raises:
        InputError: the budget cannot be used, or needs noise that cannot be drawn.
    """
    releases, sizes = hops * refreshes, sizes or TrafficSizes()
    if noise_std is None:
        if epsilon is None:
            raise TypeError("expected epsilon or noise_std")
        budget = Budget(epsilon=epsilon, delta=delta)
        noise_std, share = _noise_std(budget, releases, probe_share, degrees_epsilon)
    else:
        share = share_from_rest(noise_std / math.sqrt(releases), probe_share)
    if not SMALLEST_NOISE <= noise_std <= LARGEST_NOISE:
        raise InputError(
            f"noise_std: expected a noise between {SMALLEST_NOISE:g} and {LARGEST_NOISE:g} per "
            f"unit-norm message, got {noise_std:g}"
        )

    probe_noise_std = probe_noise_from_rest(noise_std / math.sqrt(releases), share=share)

    def after(count: int) -> Guarantee:
        return guarantee(
            noise_std=noise_std,
            releases=count,
            delta=delta,
            probe_noise_std=probe_noise_std,
            degrees_epsilon=degrees_epsilon,
        )

    whole = after(releases)
    planned_traffic = planned_traffic_of(sizes, hops=hops, releases=releases)
    claimed = paper_claim_for(
        epsilon=whole.epsilon,
        noise_std=noise_std,
        delta=delta,
        num_layers=hops,
        sizes=PaperSizes(
            num_train_nodes=sizes.num_train_nodes,
            batch_size=sizes.batch_size,
            max_degree=sizes.max_degree,
            num_epochs=sizes.epochs,
        ),
    )
    return Plan(
        certified=whole,
        phases=_phases(whole, planned_traffic, degrees_epsilon),
        one_more_release=after(releases + 1),
        claimed=claimed if isinstance(claimed, PaperClaim) else None,
        claimed_omitted=claimed if isinstance(claimed, str) else None,
        planned_traffic=planned_traffic,
    )


def _phases(
    whole: Guarantee, planned_traffic: PlannedTraffic | None, degrees_epsilon: float
) -> tuple[Phase, ...]:
    """Steps of a user in order: look at degrees, train, validate, predict."""
    training = guarantee(
        noise_std=whole.noise_std,
        releases=whole.releases,
        delta=whole.delta,
        probe_noise_std=whole.probe_noise_std,
    )
    probes = 0 if whole.probe_noise_std is None else 1
    histogram = guarantee(
        noise_std=whole.noise_std, releases=0, delta=whole.delta, degrees_epsilon=degrees_epsilon
    )
    rows = [
        ("degree histogram", 1 if degrees_epsilon else 0, degrees_epsilon, histogram.epsilon),
        ("training", whole.releases + probes, training.epsilon, whole.epsilon),
        ("validation", 0, 0.0, whole.epsilon),
        ("inference", 0, 0.0, whole.epsilon),
    ]
    traffic = planned_traffic.by_phase if planned_traffic else {}
    return tuple(
        Phase(
            name=name,
            releases=releases,
            epsilon=epsilon,
            epsilon_so_far=so_far,
            traffic=traffic.get(name),
        )
        for name, releases, epsilon, so_far in rows
    )


def _noise_std(
    budget: Budget, releases: int, probe_share: ProbeShare, degrees_epsilon: float
) -> tuple[float, float]:
    """Smallest noise for the budget left by histogram and probe, and the share of the probe."""
    left = float_down(Fraction(require_finite(budget).epsilon) - Fraction(degrees_epsilon))
    if left <= 0:
        raise InputError(
            f"degree histogram: expected an epsilon below the budget of epsilon {budget.epsilon:g} "
            f"at delta {budget.delta:g}, so that something is left for training, got "
            f"{degrees_epsilon:g}; use a smaller one"
        )
    remaining = Budget(epsilon=left, delta=budget.delta)
    alone = noise_std_for(budget=remaining, releases=1)
    share = probe_share(alone)
    _, rest = split_probe_noise(alone, share=share)
    noise_std = rest * math.sqrt(releases) * ROUND_UP
    if noise_std > LARGEST_NOISE:
        raise InputError(
            f"epsilon: this budget needs a noise of {noise_std:.3g} per unit-norm message for "
            f"{releases} releases, expected at most {LARGEST_NOISE:g}; use a larger "
            f"epsilon or fewer releases (hops times refreshes)"
        )
    return max(noise_std, SMALLEST_NOISE), share
