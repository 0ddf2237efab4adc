"""The graph that a data party answers about: its holdings, its door, its budget.

| graph | door | cost |
| --- | --- | --- |
| that of training | `KeptDoor`: reads what was released | none |
| a snapshot that came later | charged, with a vault of its own | once, when first asked |
| any, of a method that reads no edge | closed | none |
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vesper.deployment.saved_run import AnsweringRun, digest_of_nodes, feature_columns
from vesper.errors import BudgetError, InputError, first_three
from vesper.graph.holdings import DataHoldings
from vesper.mechanism.door import ClosedDoor, Door
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release_store import Vault
from vesper.mechanism.replay_door import KeptDoor
from vesper.method.base import Sizes
from vesper.method.noise_plan import budget_of
from vesper.method.settings import Config
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.reader import LedgerReader
from vesper.privacy.ledger.run_balance import DEGREES, balance_of_run
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.serving.snapshots import Snapshots
from vesper.session.doors import open_door, within
from vesper.session.run_spec import Agreement, agreement_of


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is answered about.

    Args:
        name: crosses to the label party; random, or the name of the session.
        is_new: it is not the graph of training.
        open_door: gives a door with releases in order, and the agreement with noise that fits
            behind it; raises BudgetError when they do not fit the budget.
        balance: what is spent and left; None where no edge is read.
        budget: the one agreed on; None where no edge is read.
    """

    name: str
    is_new: bool
    data: DataHoldings
    sizes: Sizes
    open_door: Callable[[], tuple[Door, Agreement]]
    balance: Callable[[], Balance | None]
    budget: Budget | None

    def in_words(self) -> list[str]:
        """Say what is answered about, for the data party's eyes."""
        name = f"graph {self.name[:8]}, {self.sizes.num_nodes} nodes"
        if self.budget is None:
            return [f"{name}: no edge is read, answers cost nothing"]
        balance = self.balance()
        spent = 0.0 if balance is None else balance.spent_epsilon(self.budget.delta)
        if not self.is_new:
            return [f"{name}: epsilon {spent:.3g} was spent in training, answers are free"]
        return [
            f"{name}: a snapshot with a budget of its own, epsilon {self.budget.epsilon:g} at "
            f"delta {self.budget.delta:g}; {spent:.3g} is spent, its releases are charged once, "
            f"when they are first asked for",
            "an edge that is in the graph of training as well is a record of both",
        ]


def trained_subject(
    run: AnsweringRun, data: DataHoldings, *, state: Path, ledger: LedgerReader
) -> Subject:
    """The graph of training; nothing is charged, the ledger is only read.

    Raises:
        InputError: nodes, features or edges are not those of training.
    """

    def kept() -> KeptDoor:
        return KeptDoor(
            data.graph,
            ledger=ledger,
            run=f"session {run.session}",
            vault=Vault(state / "releases"),
        )

    first = kept()  # refuses another graph before anybody is answered
    # Noise, and what was asked with it, were planned for what counts had left of epsilon.
    planned = within(run.config, first.balance(), ledger, run=f"session {run.session}")
    agreement = agreement_of(planned, run.sizes, num_val=0, num_test=0)
    return Subject(
        name=run.session,
        is_new=False,
        data=data,
        sizes=run.sizes,
        open_door=lambda: (kept(), agreement),
        balance=first.balance,
        budget=budget_of(run.config.privacy, run.sizes),
    )


def snapshot_subject(
    run: AnsweringRun,
    data: DataHoldings,
    *,
    folder: Path,
    state: Path,
    ledger: Ledger,
    noise: NoiseSource,
) -> Subject:
    """A graph that came after training, with a budget of its own; charged when first asked.

    Raises:
        InputError: it is the graph of training, or one answered about under another name.
    """
    graph = fingerprint(data.graph, key=key_of(ledger))
    if any(e.graph == graph and e.run == f"session {run.session}" for e in ledger.entries()):
        raise InputError(
            f"{folder}: this is the graph of training, its releases are there; answer without "
            f"--snapshot"
        )
    sizes = replace(run.sizes, num_nodes=data.graph.num_nodes)
    agreement = agreement_of(without_poll(run.config), sizes, num_val=0, num_test=0)
    snapshot = Snapshots(state / "snapshots").of(graph, digest_of_nodes(data), folder=folder)
    own = f"snapshot {snapshot.name}"
    refuse_charged_elsewhere(ledger, graph, own=own, folder=folder)

    def charged() -> tuple[Door, Agreement]:
        return open_door(
            agreement,
            data.graph,
            ledger,
            noise,
            run=own,
            vault=Vault(snapshot.folder / "releases"),
        )

    with suppress(BudgetError):  # is told to whoever asks; all else is for this party to set right
        charged()
    return Subject(
        name=snapshot.name,
        is_new=True,
        data=data,
        sizes=sizes,
        open_door=charged,
        balance=lambda: balance_of_run(ledger, graph, own),
        budget=budget_of(run.config.privacy, sizes),
    )


def refuse_charged_elsewhere(ledger: Ledger, graph: str, *, own: str, folder: Path) -> None:
    """Refuse, before anybody is met, edges that other runs have used up budget of.

    Counts do not matter: they cost every graph the same (`privacy.ledger.run_balance`).

    Raises:
        InputError: there is such a run. What it has left would decide on answers, and that is to
            tell that no edge has changed since.
    """
    others = {
        entry.run
        for entry in ledger.entries()
        if entry.graph == graph
        and entry.cost > 0
        and entry.run != own
        and not str(entry.facts.get("what", "")).startswith(DEGREES)
    }
    if others:
        raise InputError(
            f"{folder}: its edges are exactly those that this ledger was charged for in "
            f"{min(others)}; answers, or their refusal, would tell the peer that none has changed. "
            f"Answer about a snapshot of another day"
        )


def without_poll(config: Config) -> Config:
    """Training has found out whether labels are worth saying; no budget is set aside to ask again.

    Voices of training nodes that are still there are heard all the same.
    """
    return config.model_copy(
        update={"run": config.run.model_copy(update={"label_messages": False})}
    )


def edge_free_subject(
    run: AnsweringRun, data: DataHoldings, *, folder: Path | None, state: Path
) -> Subject:
    """The graph of training, or a snapshot in `folder`, for a method that reads no edge."""
    nodes, snapshots = digest_of_nodes(data), Snapshots(state / "snapshots")
    sizes = replace(run.sizes, num_nodes=data.graph.num_nodes)
    agreement = agreement_of(run.config, sizes, num_val=0, num_test=0)
    return Subject(
        name=snapshots.of(nodes, nodes, folder=folder).name if folder else run.session,
        is_new=folder is not None,
        data=data,
        sizes=sizes,
        open_door=lambda: (ClosedDoor(), agreement),
        balance=lambda: None,
        budget=None,
    )


def refuse_other_nodes(run: AnsweringRun, data: DataHoldings) -> None:
    """Refuse nodes or features that are not those of training.

    Raises:
        InputError: they are not.
    """
    if digest_of_nodes(data) != run.nodes:
        raise InputError(
            "party.folder: the nodes or features are not those that the run was trained on; put "
            "them back, or answer about them with --snapshot FOLDER"
        )


def refuse_other_columns(expected: list[list[Any]], folder: Path) -> None:
    """Refuse a snapshot whose features are others than those of training, or in another order.

    Raises:
        InputError: they are.
    """
    columns = feature_columns(folder)
    if columns != expected:
        missing = [column[0] for column in expected if column not in columns]
        raise InputError(
            f"{folder}: expected the {len(expected)} feature columns of training in the same "
            f"order, found {len(columns)}"
            + (f", {len(missing)} are missing ({first_three(missing)})" if missing else "")
        )
