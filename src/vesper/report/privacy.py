"""What a model promises about edges: numbers for programs, words for a privacy officer."""

import math
from dataclasses import dataclass

from vesper.method.base import Promise
from vesper.report.budget_section import Charged, best_guess

ONLY_THIS_FIT = (
    "this fit alone: no ledger was kept, so other fits on the same graph are not counted"
)
NO_EDGE = "this fit alone, which reads no edge"
NO_GUARANTEE = "nothing: this fit uses edges without a guarantee, and a ledger says so"


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """What is guaranteed about one edge of the private graph, or about all edges of one node."""

    epsilon: float
    """Certified for everything the label party ever sees; inf where nothing is certified. With
    simulated noise, what the same training would be worth with real noise."""
    delta: float | None
    is_private: bool
    """Whether the guarantee holds: certified, and noise came from the operating system (or no edge
    was read at all)."""
    plan: str
    """`certified`, `paper` (claimed only), `edge-free` (no edge is read) or `none`."""
    claimed_epsilon: float | None
    """What a plan that is not certified claims for itself."""
    noise: str
    noise_stds: tuple[float, ...]
    covers: str
    """What the budget counts."""
    unit: str = "edge"
    """Of what is protected: one `edge`, or all edges of one `node` at once."""
    charged: Charged | None = None
    planned_releases: int | None = None
    """As the method said; None for one a noise."""

    @property
    def releases(self) -> int:
        """How many times something computed from edges left, or would have."""
        if self.charged:
            return len(self.charged.charges)
        return len(self.noise_stds) if self.planned_releases is None else self.planned_releases

    @property
    def best_guess(self) -> float:
        """How often a guess about one edge, with even odds before, can be right; at most."""
        if self.plan == "edge-free":
            return 0.5
        if not self.is_private:
            return 1.0
        whole = best_guess(epsilon=self.epsilon, delta=self.delta or 0.0)
        return min(whole, self.charged.best_guess) if self.charged else whole

    @property
    def verdict(self) -> str:
        """One line: what holds."""
        if self.plan == "edge-free":
            return "No edge was read: nothing about edges can leak."
        whom = "every edge" if self.unit == "edge" else "all edges of any node at once"
        if self.is_private:
            return f"Certified: epsilon {self.epsilon:g}, delta {self.delta:g} for {whom}."
        if self.plan == "certified":
            return (
                "Not private: noise came from a seed that others may know. With noise from the "
                f"operating system the same training is certified with epsilon {self.epsilon:g}, "
                f"delta {self.delta:g} for {whom}."
            )
        if self.claimed_epsilon is not None and math.isfinite(self.claimed_epsilon):
            return (
                f"Not certified: epsilon {self.claimed_epsilon:g} is claimed by an analysis that "
                "does not hold against a label party who knows every batch."
            )
        return "Not private: edges were used without noise."


def privacy_of(
    promise: Promise, *, has_secure_noise: bool, covers: str, charged: Charged | None
) -> Privacy:
    """Say what a promise is worth with this noise.

    Args:
        promise: what the method said it would do.
        has_secure_noise: whether noise came from the operating system.
        covers: what the budget counts.
        charged: what the ledger says.
    """
    certified = promise.plan == "certified"
    epsilon = promise.certified_epsilon
    return Privacy(
        epsilon=math.inf if epsilon is None else epsilon,
        delta=promise.delta,
        is_private=promise.plan == "edge-free" or (certified and has_secure_noise),
        plan=promise.plan,
        claimed_epsilon=promise.claimed_epsilon,
        noise=_noise(promise, has_secure_noise=certified and has_secure_noise),
        noise_stds=promise.noise_stds,
        covers=covers,
        unit=promise.unit,
        charged=charged,
    )


def _noise(promise: Promise, *, has_secure_noise: bool) -> str:
    if promise.plan == "edge-free":
        return "none needed: no edge is read"
    if has_secure_noise:
        return "from the operating system's secure generator"
    if promise.plan == "certified":
        return "simulated from the seed: not private"
    if any(promise.noise_stds):
        return "as the method's own analysis asks for: not certified"
    return "none: not private"
