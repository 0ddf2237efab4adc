"""What the owner of a graph reads when its account refuses something."""

from pathlib import Path
from typing import Any

from vesper.errors import BudgetError, InputError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.relation import Relation


def over_budget(
    graph: str,
    *,
    what: str,
    requested: float,
    remaining: float,
    budget: Budget,
    spent: float,
    reserved: float,
) -> BudgetError:
    """More is requested than the budget, or the reservation of the run, has left.

    Args:
        graph: its name.
        what: what the two numbers are; people reason about epsilons, so neither is a mu^2.
        requested: epsilon of what is refused.
        remaining: epsilon of what would be admitted.
        budget: of the graph.
        spent: epsilon of everything charged.
        reserved: by how much open reservations would raise it.
    """
    digits = 6
    while digits < 17 and f"{requested:.{digits}g}" == f"{remaining:.{digits}g}":
        digits += 1  # rounding must not make a refusal look like a mistake
    return BudgetError(
        f"The privacy budget of graph '{graph}' does not allow this ({what}).\n"
        f"  Requested:  {requested:.{digits}g}\n"
        f"  Remaining:  {remaining:.{digits}g}\n"
        f"  Difference: {requested - remaining:.6g}\n"
        f"Spent so far: epsilon {spent:.4g} of {budget.epsilon:g} at delta {budget.delta:g}; "
        f"reserved for runs: {reserved:.4g}.\n"
        "Nothing was released. Use more noise, fewer releases, or a new snapshot."
    )


def used_without_guarantee(graph: str, *, run: str) -> BudgetError:
    """A run has sent something that certifies nothing."""
    return BudgetError(
        f"Graph '{graph}' was used without a guarantee by run {run}, so no epsilon holds for "
        "everything that was sent about it. Nothing was released. Use a new snapshot under another "
        "name or, if nothing from that run has left this party, a separate ledger."
    )


def in_use_without_guarantee(graph: str, *, run: str) -> BudgetError:
    """A run that certifies nothing has started, and may have sent something."""
    return BudgetError(
        f"Graph '{graph}' is in use by run {run}, which certifies nothing, so no epsilon holds for "
        f"it. Nothing was sent. Use a new snapshot under another name."
    )


def reserved_for_another(graph: str, *, run: str, plan: str) -> BudgetError:
    """A run without a guarantee would void that of a run that has started."""
    return BudgetError(
        f"Graph '{graph}' is reserved for run {run}, whose guarantee a run of plan '{plan}' would "
        f"void. Nothing was sent. Wait until that run has ended; if it never will, return what it "
        f"has reserved with `vesper budget return`."
    )


Terms = tuple[Budget, Relation | None]


def refuse_other_terms(path: Path, graph: str, held: Terms, wanted: Terms) -> None:
    """Refuse what is not a part of the budget that is set."""
    (whole, relation), (part, part_relation) = held, wanted
    if (part.delta, part_relation) == (whole.delta, relation) and part.epsilon <= whole.epsilon:
        return
    raise InputError(
        f"{path}: graph '{graph}' already has a budget of epsilon {whole.epsilon:g}, delta "
        f"{whole.delta:g} for {relation}, got epsilon {part.epsilon:g}, delta {part.delta:g} for "
        f"{part_relation}; a budget is not set twice: stay within it, or use another name for "
        f"another graph"
    )


def refuse_other_noise(path: Path, graph: str, known: dict[str, Any], *, simulated: bool) -> None:
    """Refuse to mix simulated and secret noise under one name."""
    if bool(known.get("simulated", False)) == simulated:
        return
    kinds = ("secret", "simulated")
    raise InputError(
        f"{path}: graph '{graph}' was charged for {kinds[not simulated]} noise so far, got "
        f"{kinds[simulated]} noise; use another name with --graph, or another ledger"
    )
