"""Balances from the entries of a ledger: budget and relation, then every charge in turn."""

from collections.abc import Iterable
from typing import Any

from vesper.errors import BudgetError, InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.budget_filter import OverdrawnError
from vesper.privacy.ledger.reader import Entry, LedgerReader
from vesper.privacy.relation import Relation, relation_of

NOT_WRITTEN_BY_US = (
    OverdrawnError,
    InputError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    MemoryError,
)
"""What facts raise that are incomplete, of other types, or too large."""


def accounts(ledger: LedgerReader) -> list[Balance]:
    """Return the balance of every graph in the ledger, by name, oldest first.

    Raises:
        InputError: an entry cannot have been written by a ledger.
    """
    graphs: dict[str, list[Entry]] = {}
    for entry in ledger.entries():
        if entry.graph:
            graphs.setdefault(entry.graph, []).append(entry)
    return [balance_from(ledger, graph, entries) for graph, entries in graphs.items()]


def balance_from(ledger: LedgerReader, graph: str, entries: list[Entry]) -> Balance:
    """Compute a balance from all entries of one graph.

    Raises:
        InputError: an entry cannot have been written by a ledger.
    """
    known = {entry.facts["kind"]: entry.facts for entry in entries}
    num_nodes = known.get("graph", {}).get("num_nodes")
    if not (isinstance(num_nodes, int) and num_nodes > 0):
        raise InputError(
            f"{ledger.path}: entry {entries[0].sequence} is about graph {graph}, which "
            f"no entry introduces; run `vesper budget verify`"
        )
    try:
        budget, relation = terms_of(known)
        balance = Balance(graph, num_nodes=num_nodes, budget=budget, relation=relation)
    except NOT_WRITTEN_BY_US as error:
        raise InputError(
            f"{ledger.path}: the account of graph {graph} was not written by vesper ({error}); run "
            f"`vesper budget verify`"
        ) from None
    for entry in entries:
        book(balance, entry, ledger)
    return balance


def book(balance: Balance, entry: Entry, ledger: LedgerReader) -> None:
    """Book an entry; name the ledger if vesper cannot have written it.

    Raises:
        InputError: vesper cannot have written the entry.
    """
    try:
        balance.book(entry)
    except NOT_WRITTEN_BY_US as error:
        raise InputError(
            f"{ledger.path}: entry {entry.sequence} was not written by vesper ({error}); run "
            f"`vesper budget verify`"
        ) from None


def terms_of(known: dict[str, Any]) -> tuple[Budget | None, Relation | None]:
    """Read the budget and relation of a graph from the facts of its entries, keyed by kind."""
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
    """Refuse a new budget that is below what is already spent.

    Raises:
        InputError: something was charged that has no cost for this relation.
        BudgetError: more is spent, or a run has used the graph without a guarantee.
    """
    limited = Balance("", num_nodes=num_nodes, budget=budget, relation=relation)
    unlimited = Balance("", num_nodes=num_nodes, budget=None, relation=relation)
    spent = 0.0
    try:
        for entry in entries:
            unlimited.book(entry)
            spent = unlimited.spent_epsilon(budget.delta)
            limited.book(entry)
        unlimited.refuse_unprotected()
    except InputError as error:
        raise InputError(
            f"{error} Nothing was set. Protect this unit under another name of the graph; what "
            f"both names cost adds up."
        ) from None
    except OverdrawnError:
        raise BudgetError(
            "This graph has already spent more than the budget that is to be set (epsilon at "
            f"delta {budget.delta:g}).\n"
            f"  Requested:  {spent:.6g}\n"
            f"  Remaining:  {budget.epsilon:.6g}\n"
            f"  Difference: {spent - budget.epsilon:.6g}\n"
            "Nothing was set. Set a larger budget, or use a new snapshot."
        ) from None
