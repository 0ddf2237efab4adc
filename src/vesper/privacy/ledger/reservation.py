"""Reservation: everything that a run may release, set aside before its peer is contacted.

    reserved -> released, released, ... -> returned: what is left of it

The check that a run fits its budget and the entry that reserves its part are one transaction.
Afterwards nobody else can spend that part, so nothing can make the run fail for lack of budget.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from vesper.errors import InputError
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.store import Ledger

RESERVED_KIND, RETURNED_KIND = "reserved", "returned"


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The part of a budget that is reserved for one run, for every node alike."""

    plan: str
    """`certified`; or `paper` or `none`, which certify nothing and exclude certified runs."""
    planned_epsilon: float | None = None
    """Epsilon that the noise of the run is planned for; None where nothing is certified."""
    releases: int = 0
    """Largest number of releases whose rounding must be set aside; 0 where `mu_squared` has it."""
    mu_squared: float = 0.0
    """mu^2 of everything that is not a pure release of a run without other releases."""
    pure_epsilon: float = 0.0
    """Epsilon of a run whose only release is pure; its mu^2 is in `mu_squared`."""

    @property
    def is_certified(self) -> bool:
        """Whether anything is charged."""
        return self.plan == "certified"

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger records."""
        return {
            "kind": RESERVED_KIND,
            "plan": self.plan,
            "planned_epsilon": self.planned_epsilon,
            "releases": self.releases,
            "mu_squared": self.mu_squared,
            "pure_epsilon": self.pure_epsilon,
        }


@dataclass
class OpenReservation:
    """A reservation with what is left of it."""

    reservation: Reservation
    units: int
    """Units of mu^2 that are left; 0 for a reservation in terms of pure epsilon."""
    pure: Fraction
    """Pure epsilon that is left."""
    is_pure: bool
    """Whether it counts in terms of epsilon: it was made before anything but pure releases."""


def reservation_of(facts: dict[str, Any]) -> Reservation:
    """Read a reservation back from the facts of its entry."""
    match facts:
        case {
            "plan": str(plan),
            "planned_epsilon": float() | None as planned,
            "releases": int(releases),
            "mu_squared": float(mu_squared),
            "pure_epsilon": float(pure),
        } if mu_squared >= 0 and pure >= 0:
            return Reservation(
                plan=plan,
                planned_epsilon=planned,
                releases=releases,
                mu_squared=mu_squared,
                pure_epsilon=pure,
            )
        case _:
            raise InputError(f"Expected a reservation with mu^2 and epsilon, got {facts}.")


def last_reservation(entries: Iterable[Entry], *, run: str) -> Reservation | None:
    """Find the last reservation of a run, whether it is still open or not."""
    found = None
    for entry in entries:
        if entry.run == run and entry.facts["kind"] == RESERVED_KIND:
            found = reservation_of(entry.facts)
    return found


def open_runs(ledger: LedgerReader) -> dict[str, str]:
    """Map each run with an open reservation to the graph that it is reserved for."""
    runs: dict[str, str] = {}
    for entry in ledger.entries():
        if entry.facts["kind"] == RESERVED_KIND:
            runs[entry.run] = entry.graph
        elif entry.facts["kind"] == RETURNED_KIND:
            runs.pop(entry.run, None)
    return runs


def return_unused(ledger: Ledger, *, run: str) -> bool:
    """Return what is left of a run's reservation; whether there was one."""
    with ledger.transaction():
        graph = open_runs(ledger).get(run)
        if graph is None:
            return False
        facts = {"kind": RETURNED_KIND}
        ledger.append(graph=graph, run=run, facts=facts, cost=0.0, encoded_receivers=b"")
    return True
