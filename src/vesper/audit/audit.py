"""Audit of a run: a lower bound on what it leaks about an edge or node, at a stated confidence.

    canaries present or not -> runs -> one score per canary -> lower bounds on epsilon -> verdict

| verdict | meaning |
| --- | --- |
| `refuted` | the run leaks more than it promises |
| `not covered` | it leaks more about a node than it promises about an edge |
| `not refuted` | no leak beyond the promise was detected, which proves nothing |
| `nothing promised` | there is no promise to refute |
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
"""Number of public seeds tried on small graphs; weights are public, and some reveal more."""

RUNS_PER_SEED = 1 << 32
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
    """Result of an audit."""

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
    """Upper limit for any audit with these canaries, if the noise is as promised."""
    trials: int
    canaries: int
    detections: int
    false_alarms: int
    observations: int
    """Observations with a canary behind `detections`; as many without are behind `false_alarms`."""
    seed: int
    unit: str = "edge"
    """What a canary is: an `edge`, or a `node` with all its edges."""
    protects: str = "edge"
    """What the promise protects: `edge` or `node`."""

    def as_json(self) -> dict[str, Any]:
        """Return all fields by name."""
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
        place: returns the canaries for given settings; it may use the batches, which are public.
        trials: number of runs with each canary.
        confidence: confidence of the bound.
        claim: claimed epsilon, if it differs from what the method promises.
        choose_seed: use the public seed whose weights reveal most.
        progress: receives progress reports.

    Raises:
        InputError: there are too few trials, or the settings cannot be run.
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
    observations = _runs(canaries, config, kind, trials, progress)
    bounds = _bounds(observations, delta=delta, confidence=confidence)
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
        best_possible_epsilon=_best_possible(observations, delta=delta),
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
    """Compare a lower bound with everything that was promised.

    Args:
        epsilon: the lower bound.
        promised: claimed and certified epsilon; None where there is none.
        is_covered: whether the promise covers canaries of this kind.
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
    """Run in pairs; each canary is present in one run of a pair."""
    num_canaries, seed = len(canaries), config.run.seed
    observations = []
    for run in range(2 * trials):
        coins = coins_of(run, num_canaries=num_canaries, seed=seed)
        noise_seed = (seed + 1) * RUNS_PER_SEED + run
        outcome = observe(canaries, config, coins, kind=kind, noise_seed=noise_seed)
        observations.append((coins, outcome))
        progress("runs", run + 1, 2 * trials)
    return observations


def _bounds(
    observations: list[tuple[Coins, TrialOutcome]], *, delta: float, confidence: float
) -> LowerBounds:
    present = np.concatenate([coins for coins, _ in observations])
    outcomes = [outcome for _, outcome in observations]
    if outcomes[0].scores is not None:
        scores = np.concatenate([each.scores for each in outcomes if each.scores is not None])
        middle = 0.0 if outcomes[0].mu_squared is not None else 0.5  # log ratios, or 0 and 1
        return lower_bounds(
            scores[present], scores[~present], delta=delta, confidence=confidence, middle=middle
        )
    rows = np.concatenate([each.rows for each in outcomes if each.rows is not None])
    half = len(rows) // 4 * 2  # whole pairs of runs
    first, second = np.arange(len(rows)) < half, np.arange(len(rows)) >= half
    learned = fit_discriminant(rows[first & present], rows[first & ~present])
    scores = learned.score(rows)
    return lower_bounds(
        scores[second & present],
        scores[second & ~present],
        delta=delta,
        confidence=confidence,
        middle=learned.middle,
        chosen_on=(scores[first & present], scores[first & ~present]),
    )


def _best_possible(observations: list[tuple[Coins, TrialOutcome]], *, delta: float) -> float | None:
    """Epsilon of the mean distance of the two worlds, in units of the promised noise."""
    distances = [each.mu_squared for _, each in observations if each.mu_squared is not None]
    if not distances or delta == 0:
        return None
    mu = float(np.sqrt(np.mean(distances)))
    return math.inf if math.isinf(mu) else epsilon_at_least(mu=mu, delta=delta)


def _most_revealing_seed(config: Config, place: Callable[[Config], Canaries]) -> Config:
    """Choose the public seed whose weights reveal most, by runs that do not count."""

    def with_seed(seed: int) -> Config:
        return config.model_copy(update={"run": config.run.model_copy(update={"seed": seed})})

    def distance(each: Config) -> float:
        canaries = place(each)
        coins = np.zeros(len(canaries), dtype=bool)
        outcome = observe(canaries, each, coins, kind="two worlds", noise_seed=each.run.seed)
        assert outcome.mu_squared is not None
        return float(outcome.mu_squared.mean())

    candidates = [with_seed(config.run.seed * PUBLIC_SEEDS + k) for k in range(PUBLIC_SEEDS)]
    return max(candidates, key=distance)
