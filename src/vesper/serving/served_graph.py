"""The graph that a data party serves: its holdings, its door, its budget.

| graph | door | cost |
| --- | --- | --- |
| the graph of training | replay door | none |
| a snapshot | charged door with its own release store | reserved, and charged when first queried |
| any graph, for a method that reads no edge | closed door | none |
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vesper.deployment.saved_run import SavedDataRun, digest_of_nodes
from vesper.deployment.state_folder import session_run_name
from vesper.errors import InputError, first_three
from vesper.graph.features import feature_columns
from vesper.graph.holdings import DataHoldings
from vesper.mechanism.door import ClosedDoor, Door
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release_store import ReleaseStore
from vesper.mechanism.replay_door import ReplayDoor, num_stored
from vesper.method.base import PublicSizes
from vesper.method.noise_plan import budget_of
from vesper.method.settings import Config
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.graph_name import expect_graph_name
from vesper.privacy.ledger.reader import LedgerReader
from vesper.privacy.ledger.reservation import last_reservation
from vesper.privacy.ledger.run_balance import RunBalance, balance_of_run
from vesper.privacy.ledger.store import Ledger
from vesper.serving.snapshots import SnapshotStore
from vesper.session.doors import open_door, run_spec_within
from vesper.session.run_spec import RunSpec, make_run_spec


@dataclass(frozen=True, kw_only=True)
class ServedGraph:
    """The graph that is served, with its door and budget.

    Args:
        name: sent to the label party; random, or the name of the session.
        is_new: whether it is a snapshot, not the graph of training.
        data: its nodes, features and edges.
        sizes: its public sizes.
        open_door: gives a door, and the run spec with noise that fits behind it.
        balance: what this run has spent and left; None where no edge is read.
        budget: as agreed in the contract; None where no edge is read.
    """

    name: str
    is_new: bool
    data: DataHoldings
    sizes: PublicSizes
    open_door: Callable[[], tuple[Door, RunSpec]]
    balance: Callable[[], RunBalance | None]
    budget: Budget | None

    def describe(self) -> list[str]:
        """Describe the graph and its budget in lines for the data party."""
        name = f"graph {self.name[:8]}, {self.sizes.num_nodes} nodes"
        if self.budget is None:
            return [f"{name}: no edge is read, so answers are free"]
        balance = self.balance()
        spent = 0.0 if balance is None else balance.spent_epsilon
        if not self.is_new:
            return [f"{name}: epsilon {spent:.3g} was spent in training, so answers are free"]
        return [
            f"{name}: a snapshot; epsilon {self.budget.epsilon:g} at delta {self.budget.delta:g} "
            f"is reserved, {spent:.3g} of it is spent; releases are charged once, when they are "
            f"first needed",
            "for an edge that is also in the graph of training, what can be learned adds up",
        ]


def served_training_graph(
    run: SavedDataRun, data: DataHoldings, *, state: Path, ledger: LedgerReader
) -> ServedGraph:
    """Serve the graph of training; nothing is charged, and the ledger is only read.

    Its edges are not read: whatever they are by now, answers come from what was released.
    """
    own, budget = session_run_name(run.session), budget_of(run.config.privacy, run.sizes)
    assert budget is not None, "only certified plans are served"

    def replay_door() -> ReplayDoor:
        return ReplayDoor(ledger=ledger, run=own, release_store=ReleaseStore(state / "releases"))

    replay_door()  # refuses another ledger before any query is answered
    reservation = last_reservation(ledger.entries(), run=own)
    planned = None if reservation is None else reservation.planned_epsilon
    run_spec = run_spec_within(make_run_spec(run.config, run.sizes, num_val=0, num_test=0), planned)
    return ServedGraph(
        name=run.session,
        is_new=False,
        data=data,
        sizes=run.sizes,
        open_door=lambda: (replay_door(), run_spec),
        balance=lambda: balance_of_run(ledger, own, delta=budget.delta),
        budget=budget,
    )


def served_snapshot(
    run: SavedDataRun,
    data: DataHoldings,
    *,
    graph: str | None,
    folder: Path,
    state: Path,
    ledger: Ledger,
    noise: NoiseSource,
) -> ServedGraph:
    """Serve a snapshot, whose budget is reserved now and charged when it is first queried.

    Args:
        run: that trained the model.
        data: nodes, features and edges of the snapshot.
        graph: the name of the graph that it is a version of.
        folder: where it is.
        state: state folder of the run.
        ledger: to charge.
        noise: source of its noise.

    Raises:
        InputError: the graph has no name, or its account has other terms.
        BudgetError: its releases do not fit what is left of the budget.
    """
    graph = expect_graph_name(graph)
    sizes = replace(run.sizes, num_nodes=data.graph.num_nodes)
    run_spec = make_run_spec(without_probe(run.config), sizes, num_val=0, num_test=0)
    budget = budget_of(run.config.privacy, sizes)
    assert budget is not None, "only certified plans are served"
    snapshot = SnapshotStore(state / "snapshots").find_or_add(
        graph, digest_of_nodes(data), folder=folder
    )

    releases = ReleaseStore(snapshot.folder / "releases")
    needed = len(run_spec.noise_plan.all_noise_stds) or 1

    def charged_door() -> tuple[Door, RunSpec]:
        if num_stored(ledger, run=snapshot.run) >= needed:  # nothing is left to reserve
            planned = last_reservation(ledger.entries(), run=snapshot.run)
            epsilon = None if planned is None else planned.planned_epsilon
            replay = ReplayDoor(ledger=ledger, run=snapshot.run, release_store=releases)
            return replay, run_spec_within(run_spec, epsilon)
        return open_door(
            run_spec,
            data.graph,
            ledger,
            noise,
            name=graph,
            run=snapshot.run,
            release_store=releases,
        )

    charged_door()  # reserves, or refuses, before anybody can connect
    return ServedGraph(
        name=snapshot.name,
        is_new=True,
        data=data,
        sizes=sizes,
        open_door=charged_door,
        balance=lambda: balance_of_run(ledger, snapshot.run, delta=budget.delta),
        budget=budget,
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
        name=snapshots.find_or_add("", nodes, folder=folder).name if folder else run.session,
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
