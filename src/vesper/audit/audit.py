"""How much a run leaks about one edge, or one node, at least, with a stated confidence.

    canaries there or not -> runs -> a score of each -> lower bounds on epsilon -> verdict

| verdict | meaning |
| --- | --- |
| `refuted` | it leaks more than it promises |
| `not covered` | it leaks more about a node than it promises about an edge |
| `not refuted` | nothing was found beyond the promise; no proof of it |
| `nothing promised` | there is nothing to refute |
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vesper.audit.bound import LowerBounds, epsilon_at_least, lower_bounds
from vesper.audit.canaries import Canaries, Coins, coins_of
from vesper.audit.trial import (
    Kind,
    TrialOutcome,
    are_independent,
    fit_discriminant,
    kind_of,
    observe,
)
from vesper.errors import InputError
from vesper.method.noise_plan import public_delta
from vesper.method.settings import Config
from vesper.progress import Progress, no_progress
from vesper.session.run_spec import run_spec_for

PUBLIC_SEEDS = 8
"""Tried, where the small graphs are used: weights are public too, and some show more."""

RUNS_A_SEED = 1 << 32
FEWEST_TRIALS = 4

STATISTICS: dict[Kind, str] = {
    "release": "exact likelihood ratio of the releases",
    "two worlds": "exact likelihood ratio of the perturbed rows",
    "flipped edges": "edges in the noisy graph",
    "noisy edges": "edges in the noisy graph",
    "learned": "linear score, learned on the first half of the runs",
}


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found."""

    method: str
    plan: str
    epsilon_lower_bound: float
    confidence: float
    claimed_epsilon: float | None
    certified_epsilon: float | None
    verdict: str
    delta: float
    statistic: str
    assumes: str
    epsilon_without_assumption: float
    epsilon_if_gaussian: float | None
    best_possible_epsilon: float | None
    """What no audit with these canaries could exceed, if the noise is as promised."""
    trials: int
    canaries: int
    detections: int
    false_alarms: int
    observations: int
    """With the canary, and as many without, behind `detections` and `false_alarms`."""
    seed: int
    unit: str = "edge"
    """What a canary is: one edge, or one node with all its edges."""
    protects: str = "edge"
    """What the promise is about."""

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)


def audit(
    config: Config,
    place: Callable[[Config], Canaries],
    *,
    trials: int,
    confidence: float = 0.95,
    claim: float | None = None,
    choose_seed: bool = False,
    progress: Progress = no_progress,
) -> AuditResult:
    """Run `trials` times with each canary and as often without.

    Args:
        config: checked settings of the runs.
        place: from settings to canaries; public, so it may look at the batches.
        trials: runs with a canary.
        confidence: of the bound.
        claim: what was said about the run, where that is not what its method promises.
        choose_seed: look for a public seed whose weights show most.
        progress: is told how far it is.

    Raises:
        InputError: too few trials, or settings that cannot be run.
    """
    if trials < FEWEST_TRIALS:
        raise InputError(f"--trials: expected at least {FEWEST_TRIALS}, got {trials}")
    if not 0.5 <= confidence < 1:
        raise InputError(f"--confidence: expected at least 0.5 and below 1, got {confidence:g}")
    kind = kind_of(place(config), config)
    if kind == "two worlds" and choose_seed:
        config = _most_revealing_seed(config, place)
    canaries = place(config)
    if len(canaries) > 1 and not are_independent(canaries, config, kind):
        canaries = canaries.first()
    run_spec = run_spec_for(config, canaries.data, canaries.labels)
    noise_plan = run_spec.noise_plan
    delta = config.privacy.delta or public_delta(run_spec.sizes.num_nodes)
    delta = delta if noise_plan.delta is None else noise_plan.delta
    seen = _runs(canaries, config, kind, trials, progress)
    bounds = _bounds(seen, delta=delta, confidence=confidence)
    is_gaussian = kind in ("release", "two worlds") or any(noise_plan.noise_stds)
    guesses = bounds.gaussian_guesses if is_gaussian else bounds.guesses
    epsilon = bounds.epsilon_if_gaussian if is_gaussian else bounds.epsilon
    assert epsilon is not None, "Gaussian noise has a delta above 0"
    claimed = noise_plan.claimed_epsilon if claim is None else claim
    protects = noise_plan.unit if claim is None else config.privacy.privacy_unit
    is_covered = protects == "node" or canaries.unit == "edge"
    return AuditResult(
        method=config.run.method,
        plan=noise_plan.plan,
        epsilon_lower_bound=epsilon,
        confidence=confidence,
        claimed_epsilon=claimed,
        certified_epsilon=noise_plan.certified_epsilon,
        verdict=verdict_of(epsilon, claimed, noise_plan.certified_epsilon, is_covered=is_covered),
        delta=delta,
        statistic=STATISTICS[kind],
        assumes="Gaussian noise of any size, none included" if is_gaussian else "nothing",
        epsilon_without_assumption=bounds.epsilon,
        epsilon_if_gaussian=bounds.epsilon_if_gaussian,
        best_possible_epsilon=_best_possible(seen, delta=delta),
        trials=trials,
        canaries=len(canaries),
        detections=guesses.detections,
        false_alarms=guesses.false_alarms,
        observations=guesses.with_edge,
        seed=config.run.seed,
        unit=canaries.unit,
        protects=protects,
    )


def verdict_of(epsilon: float, *promised: float | None, is_covered: bool = True) -> str:
    """Hold a lower bound against everything that was promised.

    Args:
        epsilon: the bound.
        promised: claimed and certified, where they are.
        is_covered: whether the promise is about what the canaries are.
    """
    limits = [each for each in promised if each is not None]
    if not limits:
        return "nothing promised"
    if epsilon <= min(limits):
        return "not refuted"
    return "refuted" if is_covered else "not covered"


def _runs(
    canaries: Canaries, config: Config, kind: Kind, trials: int, progress: Progress
) -> list[tuple[Coins, TrialOutcome]]:
    """Runs in twos, each canary there in one of the two."""
    num_canaries, seed = len(canaries), config.run.seed
    seen = []
    for run in range(2 * trials):
        coins = coins_of(run, num_canaries=num_canaries, seed=seed)
        noise_seed = (seed + 1) * RUNS_A_SEED + run
        seen.append((coins, observe(canaries, config, coins, kind=kind, noise_seed=noise_seed)))
        progress("runs", run + 1, 2 * trials)
    return seen


def _bounds(
    seen: list[tuple[Coins, TrialOutcome]], *, delta: float, confidence: float
) -> LowerBounds:
    there = np.concatenate([coins for coins, _ in seen])
    if seen[0][1].scores is not None:
        scores = np.concatenate([each.scores for _, each in seen if each.scores is not None])
        middle = 0.0 if seen[0][1].mu_squared is not None else 0.5  # ratios, or yes and no
        return lower_bounds(
            scores[there], scores[~there], delta=delta, confidence=confidence, middle=middle
        )
    rows = np.concatenate([each.rows for _, each in seen if each.rows is not None])
    half = len(rows) // 4 * 2  # whole twos of runs
    first, second = np.arange(len(rows)) < half, np.arange(len(rows)) >= half
    learned = fit_discriminant(rows[first & there], rows[first & ~there])
    scores = learned.score(rows)
    return lower_bounds(
        scores[second & there],
        scores[second & ~there],
        delta=delta,
        confidence=confidence,
        middle=learned.middle,
        chosen_on=(scores[first & there], scores[first & ~there]),
    )


def _best_possible(seen: list[tuple[Coins, TrialOutcome]], *, delta: float) -> float | None:
    """From the mean distance of the two worlds in units of the promised noise."""
    apart = [each.mu_squared for _, each in seen if each.mu_squared is not None]
    if not apart or delta == 0:
        return None
    mu = float(np.sqrt(np.mean(apart)))
    return math.inf if math.isinf(mu) else epsilon_at_least(mu=mu, delta=delta)


def _most_revealing_seed(config: Config, place: Callable[[Config], Canaries]) -> Config:
    """The public seed whose weights show most of the canaries, tried on runs that do not count."""

    def with_seed(seed: int) -> Config:
        return config.model_copy(update={"run": config.run.model_copy(update={"seed": seed})})

    def distance(each: Config) -> float:
        canaries = place(each)
        coins = np.zeros(len(canaries), dtype=bool)
        seen = observe(canaries, each, coins, kind="two worlds", noise_seed=each.run.seed)
        assert seen.mu_squared is not None
        return float(seen.mu_squared.mean())

    tried = [with_seed(config.run.seed * PUBLIC_SEEDS + k) for k in range(PUBLIC_SEEDS)]
    return max(tried, key=distance)
