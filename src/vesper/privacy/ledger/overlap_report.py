"""Warnings to the owner of a graph: two names in a ledger have much the same edges, or the edges
of one name have changed since a run began.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.overlap import VERSION_KIND, Overlap, overlaps_of
from vesper.privacy.ledger.reader import LedgerReader
from vesper.privacy.ledger.reservation import RESERVED_KIND


def warn_owner(show: Callable[[str], None], describe: Callable[[], Iterable[str]]) -> None:
    """Show what only the owner may know; whatever fails in here, what follows is the same.

    There is something to show in some worlds and nothing in others, so neither a closed terminal
    nor a text that it cannot display may end the process.
    """
    with suppress(Exception):
        for text in describe():
            show(text)


def describe_overlaps(ledger: LedgerReader, graph: str) -> list[str]:
    """Describe every other name that shares edges with a graph, and what both add up to."""
    overlaps = overlaps_of(graph, ledger.entries())
    if not overlaps:
        return []
    balances = {balance.graph: balance for balance in accounts(ledger)}
    return [
        _describe(ledger, balances[graph], balances[overlap.other], overlap) for overlap in overlaps
    ]


def describe_change(ledger: LedgerReader, graph: str, *, run: str) -> list[str]:
    """Describe that the edges are others than a run began with; empty if they are not.

    A run that is resumed continues all the same: a refusal would reveal the change.

    Args:
        ledger: in which the graph was opened today.
        graph: its name.
        run: name of the run.
    """
    first = last = None
    for entry in ledger.entries():
        if entry.graph != graph:
            continue
        if entry.facts["kind"] == VERSION_KIND:
            last = entry.facts["edges"]
        elif entry.facts["kind"] == RESERVED_KIND and entry.run == run and first is None:
            first = last
    if first is None or first == last:
        return []
    return [
        f"graph '{graph}' has other edges than when this run began: what was released stays as it "
        f"is, and further releases are made from the edges of today"
    ]


def _describe(ledger: LedgerReader, own: Balance, other: Balance, overlap: Overlap) -> str:
    share = "all" if overlap.share == 1 else f"about {overlap.share:.0%}"
    allowed = [_allowed(balance) for balance in (own, other)]
    together = f"epsilon {sum(epsilon for epsilon, _ in allowed):g}"
    if any(delta for _, delta in allowed):
        together += f", delta {sum(delta for _, delta in allowed):g}"
    decision = (
        f"accepted by {overlap.accepted_by}"
        if overlap.accepted_by
        else f"use one name for both, or record that two budgets are intended with "
        f"`vesper budget accept {ledger.path} --graph {own.graph} --other {other.graph} "
        f"--by NAME`"
    )
    return (
        f"graph '{own.graph}' shares {share} of its edges with graph '{other.graph}': for an edge "
        f"in both, both add up to {together}; {decision}"
    )


def _allowed(balance: Balance) -> tuple[float, float]:
    """Epsilon and delta that a graph may cost; without a budget, what it has cost so far."""
    if balance.budget is not None and balance.unprotected is None:
        return balance.budget.epsilon, balance.budget.delta
    return balance.spent_epsilon(), balance.delta if balance.spent_mu_squared else 0.0
