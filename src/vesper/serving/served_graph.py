"""The graph that a data party serves: its holdings, its door, its budget.

| graph | door | cost |
| --- | --- | --- |
| the graph of training | replay door | none |
| a snapshot | charged door with its own release store | once, when first queried |
| any graph, for a method that reads no edge | closed door | none |
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vesper.deployment.saved_run import SavedDataRun, digest_of_nodes
from vesper.errors import BudgetError, InputError, first_three
from vesper.graph.features import feature_columns
from vesper.graph.holdings import DataHoldings
from vesper.mechanism.door import ClosedDoor, Door
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release_store import ReleaseStore
from vesper.mechanism.replay_door import ReplayDoor
from vesper.method.base import PublicSizes
from vesper.method.noise_plan import budget_of
from vesper.method.settings import Config
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.balance import Balance
from vesper.privacy.ledger.reader import DEGREES, LedgerReader
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.serving.snapshots import SnapshotStore
from vesper.session.doors import open_door, with_remaining_epsilon
from vesper.session.run_spec import RunSpec, make_run_spec


@dataclass(frozen=True, kw_only=True)
class ServedGraph:
    """The graph that is served, with its door and budget.

    Args:
        name: sent to the label party; random, or the name of the session.
        is_new: whether it is a snapshot, not the graph of training.
        data: its nodes, features and edges.
        sizes: its public sizes.
        open_door: gives a door, and the run spec with noise that fits behind it; raises
            BudgetError if the releases do not fit the budget.
        balance: what is spent and left; None where no edge is read.
        budget: as agreed in the contract; None where no edge is read.
    """

    name: str
    is_new: bool
    data: DataHoldings
    sizes: PublicSizes
    open_door: Callable[[], tuple[Door, RunSpec]]
    balance: Callable[[], Balance | None]
    budget: Budget | None

    def describe(self) -> list[str]:
        """Describe the graph and its budget in lines for the data party."""
        name = f"graph {self.name[:8]}, {self.sizes.num_nodes} nodes"
        if self.budget is None:
            return [f"{name}: no edge is read, so answers are free"]
        balance = self.balance()
        spent = 0.0 if balance is None else balance.spent_epsilon(self.budget.delta)
        if not self.is_new:
            return [f"{name}: epsilon {spent:.3g} was spent in training, so answers are free"]
        return [
            f"{name}: a snapshot with its own budget, epsilon {self.budget.epsilon:g} at delta "
            f"{self.budget.delta:g}; {spent:.3g} is spent; releases are charged once, when they "
            f"are first needed",
            "for an edge that is also in the graph of training, what can be learned adds up",
        ]


def served_training_graph(
    run: SavedDataRun, data: DataHoldings, *, state: Path, ledger: LedgerReader
) -> ServedGraph:
    """Serve the graph of training; nothing is charged, and the ledger is only read.

    Raises:
        InputError: the edges are not those of training.
    """

    def replay_door() -> ReplayDoor:
        return ReplayDoor(
            data.graph,
            ledger=ledger,
            run=f"session {run.session}",
            release_store=ReleaseStore(state / "releases"),
        )

    first = replay_door()  # refuses another graph before any query is answered
    # The noise plan of training was made for the epsilon that earlier counts had left.
    planned = with_remaining_epsilon(
        run.config, first.balance(), ledger, run=f"session {run.session}"
    )
    run_spec = make_run_spec(planned, run.sizes, num_val=0, num_test=0)
    return ServedGraph(
        name=run.session,
        is_new=False,
        data=data,
        sizes=run.sizes,
        open_door=lambda: (replay_door(), run_spec),
        balance=first.balance,
        budget=budget_of(run.config.privacy, run.sizes),
    )


def served_snapshot(
    run: SavedDataRun,
    data: DataHoldings,
    *,
    folder: Path,
    state: Path,
    ledger: Ledger,
    noise: NoiseSource,
) -> ServedGraph:
    """Serve a snapshot, with its own budget; it is charged when first queried.

    Raises:
        InputError: it is the graph of training, was served from another folder or with other
            nodes, or another run was charged for its edges.
    """
    graph = fingerprint(data.graph, key=key_of(ledger))
    if any(e.graph == graph and e.run == f"session {run.session}" for e in ledger.entries()):
        raise InputError(
            f"{folder}: this is the graph of training, whose releases exist already; run without "
            f"--snapshot"
        )
    sizes = replace(run.sizes, num_nodes=data.graph.num_nodes)
    run_spec = make_run_spec(without_probe(run.config), sizes, num_val=0, num_test=0)
    snapshot = SnapshotStore(state / "snapshots").of(graph, digest_of_nodes(data), folder=folder)
    own = f"snapshot {snapshot.name}"
    refuse_charged_elsewhere(ledger, graph, own=own, folder=folder)

    def charged_door() -> tuple[Door, RunSpec]:
        return open_door(
            run_spec,
            data.graph,
            ledger,
            noise,
            run=own,
            release_store=ReleaseStore(snapshot.folder / "releases"),
        )

    with suppress(BudgetError):  # the peer receives this refusal; other errors are raised here
        charged_door()
    return ServedGraph(
        name=snapshot.name,
        is_new=True,
        data=data,
        sizes=sizes,
        open_door=charged_door,
        balance=lambda: balance_of_run(ledger, graph, own),
        budget=budget_of(run.config.privacy, sizes),
    )


def refuse_charged_elsewhere(ledger: Ledger, graph: str, *, own: str, folder: Path) -> None:
    """Refuse, before any peer connects, edges that other runs were charged for.

    Counts do not matter: they cost every graph the same (`privacy.ledger.run_balance`).

    Raises:
        InputError: there is such a run. What it has left would decide on answers, which would
            reveal that no edge has changed since.
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
            f"{min(others)}; answers, or a refusal, would reveal to the peer that none has "
            f"changed. Serve a snapshot of another day"
        )


def without_probe(config: Config) -> Config:
    """Switch off label messages, so that no budget is reserved for a probe.

    Training has decided what messages contain. Label posteriors of training nodes that are still in
    the graph are used all the same.
    """
    return config.model_copy(
        update={"run": config.run.model_copy(update={"label_messages": False})}
    )


def served_edge_free_graph(
    run: SavedDataRun, data: DataHoldings, *, folder: Path | None, state: Path
) -> ServedGraph:
    """Serve the graph of training, or a snapshot in `folder`, for a method that reads no edge."""
    nodes, snapshots = digest_of_nodes(data), SnapshotStore(state / "snapshots")
    sizes = replace(run.sizes, num_nodes=data.graph.num_nodes)
    run_spec = make_run_spec(run.config, sizes, num_val=0, num_test=0)
    return ServedGraph(
        name=snapshots.of(nodes, nodes, folder=folder).name if folder else run.session,
        is_new=folder is not None,
        data=data,
        sizes=sizes,
        open_door=lambda: (ClosedDoor(), run_spec),
        balance=lambda: None,
        budget=None,
    )


def refuse_other_nodes(run: SavedDataRun, data: DataHoldings) -> None:
    """Refuse nodes or features that differ from those of training.

    Raises:
        InputError: they differ.
    """
    if digest_of_nodes(data) != run.nodes:
        raise InputError(
            "party.folder: the nodes or features are not those that the run was trained on; "
            "restore them, or serve these with --snapshot FOLDER"
        )


def refuse_other_columns(expected: list[list[Any]], folder: Path) -> None:
    """Refuse a snapshot whose feature columns differ from those of training, or their order.

    Raises:
        InputError: they differ.
    """
    columns = feature_columns(folder)
    if columns != expected:
        missing = [column[0] for column in expected if column not in columns]
        raise InputError(
            f"{folder}: expected the {len(expected)} feature columns of training in the same "
            f"order, found {len(columns)}"
            + (f", {len(missing)} are missing ({first_three(missing)})" if missing else "")
        )
