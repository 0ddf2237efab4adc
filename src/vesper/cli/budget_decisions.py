"""`vesper budget set|return|accept`: decisions of the owner of a graph, recorded in its ledger."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.console import print_line
from vesper.errors import InputError, VesperError

if TYPE_CHECKING:
    from vesper.privacy.ledger.balance import Balance
    from vesper.privacy.ledger.reader import LedgerReader


def _ledger_of_user() -> Path:
    from vesper.privacy.ledger.ledger_file import default_ledger

    return default_ledger()


LedgerPath = Annotated[
    Path,
    typer.Argument(
        metavar="LEDGER",
        help="The ledger file; default: this user's.",
        default_factory=_ledger_of_user,
        show_default=False,
    ),
]
GraphOption = Annotated[str, typer.Option(help="Name of the graph.")]


def set_budget(
    ledger: LedgerPath,
    graph: GraphOption,
    epsilon: Annotated[float, typer.Option(help="Budget of everything released of the graph.")],
    delta: Annotated[float, typer.Option(help="Delta of the budget.")],
    unit: Annotated[str, typer.Option(help="What is protected: edge or node.")] = "edge",
    max_degree: Annotated[
        int, typer.Option(help="With --unit node: the largest degree that is promised.")
    ] = 100,
) -> None:
    """Set the budget of a graph, for several runs; without it the first run sets its own."""
    from pydantic import ValidationError

    from vesper.method.noise_plan import relation_for
    from vesper.method.settings import PrivacySettings
    from vesper.privacy.accounting.budget import Budget
    from vesper.privacy.ledger.account import open_account
    from vesper.privacy.ledger.graph_name import expect_graph_name
    from vesper.privacy.ledger.store import Ledger

    name = expect_graph_name(graph)
    try:
        privacy = PrivacySettings.model_validate(
            {"epsilon": epsilon, "delta": delta, "privacy_unit": unit, "max_degree": max_degree}
        )
    except ValidationError as error:
        raise InputError(f"vesper budget set: {error.errors()[0]['msg']}") from None
    with closing(Ledger(ledger, clock=time.time)) as opened:
        known = {balance.graph: balance for balance in _accounts(opened)}.get(name)
        if known is not None and known.budget is not None:
            raise InputError(
                f"{ledger}: graph '{name}' already has a budget of epsilon "
                f"{known.budget.epsilon:g}; a budget is not set twice"
            )
        account = open_account(
            opened,
            name,
            num_nodes=_first_num_nodes(opened, name),
            budget=Budget(epsilon=epsilon, delta=delta),
            relation=relation_for(privacy),
        )
        print_line(
            f"{ledger}: graph '{name}' has a budget of epsilon {epsilon:g} at delta {delta:g} for "
            f"{account.relation}; {account.spent_epsilon():.4g} is spent"
        )


def _first_num_nodes(ledger: "LedgerReader", name: str) -> int:
    """Number of nodes of the first version of a graph; 1 for one that has none yet."""
    for entry in ledger.entries():
        if entry.graph == name and entry.facts["kind"] == "graph":
            return int(entry.facts["num_nodes"])
    return 1


def return_reservation(
    ledger: LedgerPath,
    run: Annotated[str, typer.Option(help="Name of the run, as `budget show` prints it.")],
) -> None:
    """Return what a run that will never resume has reserved and not used."""
    from vesper.privacy.ledger.ledger_file import refuse_what_is_no_ledger
    from vesper.privacy.ledger.reservation import open_runs, return_unused
    from vesper.privacy.ledger.store import Ledger

    refuse_what_is_no_ledger(ledger)
    with closing(Ledger(ledger, clock=time.time)) as opened:
        if not return_unused(opened, run=run):
            known = ", ".join(f"'{name}'" for name in open_runs(opened)) or "none"
            raise InputError(
                f"{ledger}: run '{run}' has nothing reserved; open reservations: {known}"
            )
    print_line(f"{ledger}: what run '{run}' had reserved and not used was returned")


def accept(
    ledger: LedgerPath,
    graph: GraphOption,
    other: Annotated[str, typer.Option(help="Name of the graph with the same edges.")],
    by: Annotated[str, typer.Option(help="Who has decided.")],
) -> None:
    """Record that two names, and so two budgets, are intended for the same edges."""
    from vesper.privacy.ledger.ledger_file import refuse_what_is_no_ledger
    from vesper.privacy.ledger.overlap import ACCEPTED_KIND
    from vesper.privacy.ledger.store import Ledger

    refuse_what_is_no_ledger(ledger)
    if not by.isprintable() or not by.strip():
        raise InputError("--by: expected the name of a person, in characters that can be printed")
    with closing(Ledger(ledger, clock=time.time)) as opened:
        known = [balance.graph for balance in _accounts(opened)]
        for name in (graph, other):
            if name not in known:
                raise InputError(
                    f"{ledger}: found no graph '{name}'; expected one of {', '.join(known)}"
                )
        with opened.transaction():
            facts = {"kind": ACCEPTED_KIND, "other": other, "by": by}
            opened.append(graph=graph, run="", facts=facts, cost=0.0, encoded_receivers=b"")
    print_line(f"{ledger}: {by} accepts separate budgets for '{graph}' and '{other}'")


def _accounts(ledger: "LedgerReader") -> "list[Balance]":
    """List all accounts, of a ledger that nobody has changed."""
    from vesper.privacy.ledger.account_reader import accounts

    broken = ledger.verify()
    if broken is not None:
        raise VesperError(f"{ledger.path}: entry {broken} was changed; nothing is written to it")
    return accounts(ledger)
