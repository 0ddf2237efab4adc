"""Noise of each release, from the budget.

    share_i of the mu^2 per receiving node:   noise_std_i = noise_std(1 release) / sqrt(share_i)

Noise is rounded up, so that the ledger never refuses the last release because of rounding.
"""

import math
from dataclasses import replace

from vesper.errors import InputError
from vesper.mechanism.aggregations import rounding_of
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.settings import PrivacySettings
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import noise_std_for
from vesper.privacy.events import LARGEST_NOISE, SMALLEST_NOISE
from vesper.privacy.planning.probe_share import ROUND_UP, ProbeShare, no_probe, split_probe_noise
from vesper.privacy.relation import EdgeRelation, GraphRelation, NodeRelation


def public_delta(num_nodes: int) -> float:
    """Return the default delta: the largest power of ten that is at most 1 / (10 num_nodes).

    It depends on the number of nodes, which is public, and not on the number of edges.

    >>> public_delta(15_374)
    1e-06
    """
    return float(f"1e-{math.ceil(math.log10(max(num_nodes, 1))) + 1}")


def budget_of(privacy: PrivacySettings, sizes: PublicSizes) -> Budget | None:
    """Return the budget of the settings; None for no privacy."""
    if math.isinf(privacy.epsilon):
        return None
    delta = privacy.delta or public_delta(sizes.num_nodes)
    return Budget(epsilon=privacy.epsilon, delta=delta)


def shares(privacy: PrivacySettings, *, releases: int) -> list[float]:
    """Return each release's share of the budget.

    >>> shares(PrivacySettings(first_share=0.4), releases=3)
    [0.4, 0.3, 0.3]
    """
    if privacy.first_share is None or releases == 1:
        return [1 / releases] * releases
    rest = (1 - privacy.first_share) / (releases - 1)
    return [privacy.first_share] + [rest] * (releases - 1)


def relation_for(privacy: PrivacySettings) -> GraphRelation:
    """Return what two graphs differ by that the label party must not distinguish."""
    if privacy.privacy_unit == "edge":
        return EdgeRelation()
    degree = privacy.max_degree
    return NodeRelation(max_degree=degree, row_norm=math.sqrt(degree))


def certified_plan(
    privacy: PrivacySettings,
    sizes: PublicSizes,
    *,
    releases: int,
    width: int,
    probe_share: ProbeShare = no_probe,
) -> NoisePlan:
    """Plan `releases` Gaussian releases of messages of norm at most 1 to all nodes.

    Args:
        privacy: settings with the budget.
        sizes: public sizes.
        releases: number of releases.
        width: width of messages; for node privacy their rounding depends on it.
        probe_share: returns the share of the budget for the probe, one more release before them,
            given the noise with which a single release would use up the budget.
    """
    if privacy.accounting != "exact":
        raise InputError(
            f"accounting: expected 'exact', got '{privacy.accounting}', which is only for methods "
            f"that were published with it: 'gap', 'progap' and 'vfgnn'"
        )
    budget = budget_of(privacy, sizes)
    if budget is None:
        share = probe_share(0.0)
        probe_noise_std = 0.0 if share else None
        return replace(
            unprotected_plan(releases), probe_noise_std=probe_noise_std, probe_share=share
        )
    relation = relation_for(privacy)
    whole = noise_std_for(
        budget=budget,
        releases=1,
        rows=relation.rows,
        endpoint_shift=relation.shift(rounding=rounding_of(width)),
    )
    probe_noise_std, rest = split_probe_noise(whole, share=probe_share(whole))
    noise_stds = tuple(
        rest / math.sqrt(share) * ROUND_UP for share in shares(privacy, releases=releases)
    )
    refuse_undrawable_noise(budget, noise_stds)
    return NoisePlan(
        plan="certified",
        certified_epsilon=budget.epsilon,
        claimed_epsilon=None,
        delta=budget.delta,
        noise_stds=noise_stds,
        probe_noise_std=probe_noise_std,
        probe_share=probe_share(whole),
        width=width,
        unit=privacy.privacy_unit,
    )


def refuse_undrawable_noise(
    budget: Budget, noise_stds: tuple[float, ...], *, most: float = LARGEST_NOISE
) -> None:
    """Refuse what the ledger would refuse, with a message about settings."""
    needed = f"epsilon: {budget.epsilon:g} at delta {budget.delta:g} needs noise of std"
    if max(noise_stds) > most:
        raise InputError(
            f"{needed} {max(noise_stds):.4g} per unit-norm message, expected at most "
            f"{most:g}; use a larger epsilon or fewer hops, or method 'mlp', which reads no edge"
        )
    if min(noise_stds) < SMALLEST_NOISE:
        raise InputError(
            f"{needed} {min(noise_stds):.4g} per unit-norm message, expected at least "
            f"{SMALLEST_NOISE:g}; that protects nothing: use a smaller epsilon, or inf"
        )


def unprotected_plan(releases: int) -> NoisePlan:
    """Make a plan without noise, which guarantees nothing."""
    return NoisePlan(
        plan="none",
        certified_epsilon=None,
        claimed_epsilon=None,
        delta=None,
        noise_stds=(0.0,) * releases,
    )
