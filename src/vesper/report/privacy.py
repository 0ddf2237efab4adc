"""The guarantee of a model: numbers for programs, a verdict in words for a privacy officer.

    best guess <= 1 - (1 - tanh(pure / 2)) (1 - Phi(mu / 2))   from the charges of the run
               <= Phi(mu(epsilon, delta) / 2)                  from the plan: Gaussian noise
               <= (e^epsilon + delta) / (e^epsilon + 1)        from epsilon and delta alone

A run with Gaussian noise is planned within mu(epsilon, delta), and gets no more than that charged:
where its owner has spent some of the budget before, it uses more noise (claim L-FILTER). So the
second bound needs no ledger, and the party that receives the releases can state it.
"""

import math
from dataclasses import dataclass

from vesper.drawing.notebook import in_percent, in_short, notebook_table
from vesper.method.base import NoisePlan
from vesper.privacy.accounting.gaussian import mu_of
from vesper.report.budget_section import RunCharges, best_guess, best_guess_gaussian
from vesper.session.result import draws_noise, plan_text

ONLY_THIS_FIT = (
    "this fit alone: no ledger was kept, so other fits on the same graph are not counted"
)
NO_EDGE = "this fit alone, which reads no edge"
NO_GUARANTEE = "nothing: this fit uses edges without a guarantee, as the ledger records"


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The guarantee for one edge of the private graph, or for all edges of one node."""

    epsilon: float
    """Certified for everything the label party ever sees; inf where nothing is certified. With
    simulated noise: what the same training would guarantee with secure noise."""
    delta: float | None
    is_private: bool
    """Whether the guarantee holds: it is certified and the noise came from the operating system,
    or no edge was read at all."""
    kind: str
    """Kind of the noise plan: `certified`, `paper` (claimed only), `edge-free` (no edge is read) or
    `none`; whether the noise was drawn from a seed instead is in `simulated`."""
    claimed_epsilon: float | None
    """What the analysis behind a plan that is not certified claims."""
    noise: str
    """Where the noise came from, for people."""
    noise_stds: tuple[float, ...]
    covers: str
    """What the budget covers, for people."""
    unit: str = "edge"
    """What is protected: one `edge`, or all edges of one `node` together."""
    run_charges: RunCharges | None = None
    planned_releases: int | None = None
    """Number of releases in the noise plan; None: one per entry of `noise_stds`."""
    simulated: bool = False
    """Whether noise was drawn from a seed, so that it is repeatable and protects nothing."""
    is_upper_bound: bool = False
    """Whether noise and best guess follow from the agreed plan alone, because this party has no
    ledger: the noise was at least, the guess is at most what is stated."""

    @property
    def plan(self) -> str:
        """The kind of the noise plan, marked if its noise was simulated."""
        return plan_text(self.kind, simulated=self.simulated)

    @property
    def releases(self) -> int:
        """Number of releases: those charged or, without a ledger, those planned."""
        if self.run_charges:
            return len(self.run_charges.charges)
        return len(self.noise_stds) if self.planned_releases is None else self.planned_releases

    @property
    def best_guess(self) -> float:
        """Largest probability that a guess about one edge, at even odds before, is right."""
        if self.kind == "edge-free":
            return 0.5
        if not self.is_private:
            return 1.0
        whole = best_guess(epsilon=self.epsilon, delta=self.delta or 0.0)
        if self.delta and any(self.noise_stds):
            mu = mu_of(epsilon=self.epsilon, delta=self.delta)
            whole = min(whole, best_guess_gaussian(mu=mu))
        return min(whole, self.run_charges.best_guess) if self.run_charges else whole

    @property
    def verdict(self) -> str:
        """What holds, in one line."""
        if self.kind == "edge-free":
            return "No edge was read, so nothing about edges can leak."
        protected = "every edge" if self.unit == "edge" else "all edges of any one node together"
        if self.is_private:
            return f"Certified: epsilon {self.epsilon:g}, delta {self.delta:g} for {protected}."
        if self.kind == "certified":
            return (
                "Not private: the noise was simulated, from a seed that others may know. With "
                "noise from the operating system, the same training is certified with epsilon "
                f"{self.epsilon:g}, delta {self.delta:g} for {protected}."
            )
        if self.claimed_epsilon is not None and math.isfinite(self.claimed_epsilon):
            return (
                f"Not certified: epsilon {self.claimed_epsilon:g} is claimed by an analysis that "
                "does not hold against a label party that knows every batch."
            )
        return "Not private: edges were used without noise."

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        charged = self.run_charges
        facts = {
            "verdict": self.verdict,
            "best guess about an edge is right": f"{in_percent(100 * self.best_guess)} at most",
            "noise": self.noise,
            "releases": f"{self.releases}",
            "spent epsilon": None if charged is None else in_short(charged.spent_epsilon),
            "the budget covers": self.covers,
        }
        return notebook_table("Privacy", facts)


def privacy_of(
    noise_plan: NoisePlan, *, has_secure_noise: bool, covers: str, run_charges: RunCharges | None
) -> Privacy:
    """State what a noise plan guarantees with the noise that was drawn.

    Args:
        noise_plan: of the run.
        has_secure_noise: whether noise came from the operating system.
        covers: what the budget covers, for people.
        run_charges: what the run was charged, if there is a ledger.
    """
    certified = noise_plan.plan == "certified"
    epsilon = noise_plan.certified_epsilon
    return Privacy(
        epsilon=math.inf if epsilon is None else epsilon,
        delta=noise_plan.delta,
        is_private=noise_plan.plan == "edge-free" or (certified and has_secure_noise),
        kind=noise_plan.plan,
        claimed_epsilon=noise_plan.claimed_epsilon,
        noise=_noise(noise_plan, has_secure_noise=certified and has_secure_noise),
        noise_stds=noise_plan.noise_stds,
        covers=covers,
        unit=noise_plan.unit,
        run_charges=run_charges,
        simulated=not has_secure_noise and draws_noise(noise_plan),
    )


def _noise(noise_plan: NoisePlan, *, has_secure_noise: bool) -> str:
    if noise_plan.plan == "edge-free":
        return "none needed: no edge is read"
    if has_secure_noise:
        return "from the operating system's secure generator"
    if noise_plan.plan == "certified":
        return "simulated from the seed: not private"
    if any(noise_plan.noise_stds):
        return "as the method's own analysis requires: not certified"
    return "none: not private"
