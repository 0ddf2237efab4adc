"""What one run has reserved and spent: all that its peer, a report or a statement may show.

    spent   epsilon of the run's own charges
    left    by how much that would grow if the rest of its open reservation were used

What other runs have spent under the same name is for the owner's eyes only (`vesper budget show`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from vesper.drawing.notebook import in_short, notebook_table
from vesper.privacy.accounting.safe_numbers import float_down
from vesper.privacy.events import PURE_KIND
from vesper.privacy.ledger.account_reader import terms_of
from vesper.privacy.ledger.account_sums import DEFAULT_DELTA
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.overlap import VERSION_KIND
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.ledger.receipt import count
from vesper.privacy.ledger.reservation import (
    RESERVED_KIND,
    RETURNED_KIND,
    last_reservation,
    reservation_of,
)
from vesper.privacy.relation import Relation


@dataclass(frozen=True, kw_only=True)
class RunBalance:
    """Numbers of one run; charges of other runs never change them."""

    spent_epsilon: float
    left_epsilon: float
    spent_mu_squared: float
    delta: float
    """At which epsilons are stated."""
    pure: float
    planned_epsilon: float | None
    """Epsilon that its noise was planned for; None where nothing is certified."""
    num_nodes: int
    relation: Relation
    charges: tuple[Entry, ...]

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        facts = {
            "planned epsilon": in_short(self.planned_epsilon),
            "spent epsilon": in_short(self.spent_epsilon),
            "left epsilon": in_short(self.left_epsilon),
            "delta": in_short(self.delta),
            "charges": f"{len(self.charges)}",
        }
        return notebook_table("Budget of a run", facts)


def balance_of_run(ledger: LedgerReader, run: str, *, delta: float | None = None) -> RunBalance:
    """Sum up what a run was charged; zeros if it was charged nothing.

    Args:
        ledger: has the run's entries.
        run: its name in the ledger.
        delta: at which epsilons are stated; None: that of the graph's budget.
    """
    graphs = {entry.graph for entry in ledger.entries() if entry.run == run and entry.graph}
    entries = [entry for entry in ledger.entries() if entry.graph in graphs]
    known = {entry.facts["kind"]: entry.facts for entry in entries}
    budget, relation = terms_of(known)
    num_nodes = int(known["graph"]["num_nodes"]) if "graph" in known else 1
    alone = Balance("", num_nodes=num_nodes, budget=None, relation=relation)
    for entry in entries:
        kind = entry.facts["kind"]
        is_own_charge = entry.run == run and kind not in (RESERVED_KIND, RETURNED_KIND)
        if is_own_charge or kind in ("graph", VERSION_KIND):
            alone.book(entry)
    at = delta if delta is not None else budget.delta if budget else DEFAULT_DELTA
    reservation = last_reservation(entries, run=run)
    planned = None if reservation is None else reservation.planned_epsilon
    spent = alone.spent_epsilon(at)
    charges = tuple(entry for entry in entries if entry.run == run and entry.cost > 0)
    return RunBalance(
        # Rounded up, while the filter admits no more than what was planned at the budget's delta.
        spent_epsilon=min(spent, planned)
        if planned is not None and budget and at >= budget.delta
        else spent,
        left_epsilon=_left_epsilon(alone, entries, run=run, delta=at),
        delta=at,
        spent_mu_squared=alone.spent_mu_squared,
        pure=float(alone.pure),
        planned_epsilon=planned,
        num_nodes=count(charges[0].receivers) if charges else alone.num_nodes,
        relation=alone.relation,
        charges=charges,
    )


def _left_epsilon(alone: Balance, entries: Sequence[Entry], *, run: str, delta: float) -> float:
    """By how much the spent epsilon would grow if the rest of an open reservation were used."""
    mu_squared, pure = Fraction(0), Fraction(0)
    for entry in entries:
        if entry.run != run:
            continue
        kind = entry.facts["kind"]
        if kind == RESERVED_KIND:
            reserved = reservation_of(entry.facts)
            pure = Fraction(reserved.pure_epsilon)
            mu_squared = Fraction(0) if pure else Fraction(reserved.mu_squared)
        elif kind == RETURNED_KIND:
            mu_squared, pure = Fraction(0), Fraction(0)
        elif kind == PURE_KIND and pure:
            pure = max(Fraction(0), pure - Fraction(entry.facts["epsilon"]))
        else:
            mu_squared = max(Fraction(0), mu_squared - Fraction(entry.cost))
    if not mu_squared and not pure:
        return 0.0
    whole = alone.epsilon_after(mu_squared=float_down(mu_squared), pure=pure, delta=delta)
    return 0.0 if math.isinf(whole) else max(0.0, whole - alone.spent_epsilon(delta))
