"""The terms of an account, as the ledger's entries tell them: budget, relation, what is booked."""

from collections.abc import Iterable
from typing import Any

from vesper.errors import BudgetError, InputError
from vesper.privacy.balance import Balance, Overdrawn
from vesper.privacy.budget import Budget
from vesper.privacy.ledger_reader import Entry, LedgerReader
from vesper.privacy.relation import Relation, relation_of


def book(balance: Balance, entry: Entry, ledger: LedgerReader) -> None:
    """Count an entry in; blame the ledger for one that vesper cannot have written."""
    try:
        balance.book(entry)
    except (Overdrawn, InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{ledger.path}: entry {entry.sequence} is none that vesper wrote ({error}); run "
            f"`vesper budget verify`"
        ) from None


def terms_of(known: dict[str, Any]) -> tuple[Budget | None, Relation | None]:
    """Budget and relation of a graph, from the facts of its entries by kind."""
    facts = known.get("budget")
    if facts is None:
        return None, None
    match facts:
        case {"epsilon": float(epsilon), "delta": float(delta)}:
            return Budget(epsilon=epsilon, delta=delta), relation_of(facts)
        case _:
            raise InputError(f"Expected a budget with epsilon and delta, got {facts}.")


def refuse_if_spent(
    entries: Iterable[Entry], num_nodes: int, budget: Budget, relation: Relation
) -> None:
    """A budget below what is spent cannot be kept: it is refused, not shown as overdrawn."""
    asked = Balance("", num_nodes=num_nodes, budget=budget, relation=relation)
    unlimited = Balance("", num_nodes=num_nodes, budget=None, relation=relation)
    spent = 0.0
    try:
        for entry in entries:
            unlimited.book(entry)
            spent = unlimited.spent_epsilon(budget.delta)
            asked.book(entry)
        unlimited.refuse_unprotected()
    except Overdrawn:
        raise BudgetError(
            "This graph has spent more already than the budget that is to be set (epsilon at "
            f"delta {budget.delta:g}).\n"
            f"  Requested:  {spent:.6g}\n"
            f"  Remaining:  {budget.epsilon:.6g}\n"
            f"  Difference: {spent - budget.epsilon:.6g}\n"
            "Nothing was set. Set a larger budget, or use a new snapshot."
        ) from None
