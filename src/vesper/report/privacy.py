"""What a model promises about edges: numbers for programs, words for a privacy officer."""

import math
from dataclasses import dataclass

from vesper.method.base import NoisePlan
from vesper.report.budget_section import RunCharges, best_guess

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
    run_charges: RunCharges | None = None
    planned_releases: int | None = None
    """As the method said; None for one a noise."""

    @property
    def releases(self) -> int:
        """How many times something computed from edges left, or would have."""
        if self.run_charges:
            return len(self.run_charges.charges)
        return len(self.noise_stds) if self.planned_releases is None else self.planned_releases

    @property
    def best_guess(self) -> float:
        """How often a guess about one edge, with even odds before, can be right; at most."""
        if self.plan == "edge-free":
            return 0.5
        if not self.is_private:
            return 1.0
        whole = best_guess(epsilon=self.epsilon, delta=self.delta or 0.0)
        return min(whole, self.run_charges.best_guess) if self.run_charges else whole

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
    noise_plan: NoisePlan, *, has_secure_noise: bool, covers: str, run_charges: RunCharges | None
) -> Privacy:
    """Say what a promise is worth with this noise.

    Args:
        noise_plan: what the method said it would do.
        has_secure_noise: whether noise came from the operating system.
        covers: what the budget counts.
        run_charges: what the ledger says.
    """
    certified = noise_plan.plan == "certified"
    epsilon = noise_plan.certified_epsilon
    return Privacy(
        epsilon=math.inf if epsilon is None else epsilon,
        delta=noise_plan.delta,
        is_private=noise_plan.plan == "edge-free" or (certified and has_secure_noise),
        plan=noise_plan.plan,
        claimed_epsilon=noise_plan.claimed_epsilon,
        noise=_noise(noise_plan, has_secure_noise=certified and has_secure_noise),
        noise_stds=noise_plan.noise_stds,
        covers=covers,
        unit=noise_plan.unit,
        run_charges=run_charges,
    )


def _noise(noise_plan: NoisePlan, *, has_secure_noise: bool) -> str:
    if noise_plan.plan == "edge-free":
        return "none needed: no edge is read"
    if has_secure_noise:
        return "from the operating system's secure generator"
    if noise_plan.plan == "certified":
        return "simulated from the seed: not private"
    if any(noise_plan.noise_stds):
        return "as the method's own analysis asks for: not certified"
    return "none: not private"
