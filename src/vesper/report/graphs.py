"""Graphs that a model was used on, each with its own budget: that of training, then snapshots.

| folder | what it holds about snapshots |
| --- | --- |
| of a simulation | `result.json`: metric, budget, spent epsilon, releases |
| the data party's state | `snapshots/` and the ledger: budget, spent epsilon, releases |
| the label party's state | budgets the data party sent; metrics of `vesper predict --measure` |
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import LedgerReader
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.report.budget_section import RunCharges
from vesper.report.html import lines_table, number
from vesper.serving.embedding_cache import read_graph_notes
from vesper.serving.snapshots import Snapshot, known_snapshots

TRAINING = "training"

NOTE = (
    "Each line is one run on one graph. For an edge that is in two of these graphs, what can be "
    "learned from each adds up."
)


@dataclass(frozen=True, kw_only=True)
class GraphLine:
    """One graph; None stands for what this side does not know."""

    name: str
    nodes: int | None = None
    test: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    spent_epsilon: float | None = None
    releases: int | None = None


def graph_lines(
    run: Path, result: Mapping[str, Any], *, run_charges: RunCharges | None, ledger: Path | None
) -> tuple[GraphLine, ...]:
    """List the graphs of a run; empty if there is only the graph of training.

    Args:
        run: run folder of a simulation, or state folder of a party.
        result: the content of `result.json`.
        run_charges: what training was charged, if known.
        ledger: the data party's, if available.
    """
    snapshots = (
        _simulated_snapshots(result)
        or _served_snapshots(run, ledger)
        or _queried_graphs(run, str(result.get("session")))
    )
    if not snapshots:
        return ()
    facts = result["privacy"]
    first = GraphLine(
        name=TRAINING,
        test=result.get("test"),
        epsilon=facts["certified_epsilon"],
        delta=facts["delta"],
        spent_epsilon=None if run_charges is None else run_charges.spent_epsilon,
        releases=facts["releases"] if run_charges is None else len(run_charges.charges),
    )
    return (first, *snapshots)


def graphs_section(lines: Sequence[GraphLine], *, metric: str) -> str:
    """Render a table with one line per graph, as HTML; empty if there is only one."""
    if not lines:
        return ""
    columns: dict[str, list[str]] = {
        "graph": [line.name for line in lines],
        "nodes": [number(line.nodes, ",") for line in lines],
        f"{metric}, test": [number(line.test, ".1f", " %") for line in lines],
        "epsilon": [number(line.epsilon, "g") for line in lines],
        "delta": [number(line.delta, "g") for line in lines],
        "spent": [number(line.spent_epsilon, ".3g") for line in lines],
        "releases": [number(line.releases, "d") for line in lines],
    }
    return (
        f"<section><h2>Budget of each graph</h2>{lines_table(columns)}"
        f'<p class="note">{escape(NOTE)}</p></section>'
    )


def _simulated_snapshots(result: Mapping[str, Any]) -> list[GraphLine]:
    """One line per snapshot, or per snapshot and data party if there are several."""
    return [
        GraphLine(
            name=name,
            nodes=cost["num_nodes"],
            test=each["test"],
            epsilon=cost["epsilon"],
            delta=cost["delta"],
            spent_epsilon=cost["spent_epsilon"],
            releases=cost["releases"],
        )
        for each in result.get("snapshots", ())
        for name, cost in _costs_of(each)
    ]


def _costs_of(snapshot: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    parties = [
        (f"{snapshot['name']}, {cost['name']}", cost) for cost in snapshot.get("parties", ())
    ]
    return parties or [(snapshot["name"], snapshot)]


def _served_snapshots(state: Path, ledger: Path | None) -> list[GraphLine]:
    """Snapshots that a data party serves; only the names of those without an account."""
    known = known_snapshots(state / "snapshots")
    if not known or ledger is None or not ledger.is_file():
        return [GraphLine(name=snapshot.source.name) for snapshot in known]
    with closing(open_to_read(ledger)) as reader:
        return [_served_snapshot(snapshot, reader) for snapshot in known]


def _served_snapshot(snapshot: Snapshot, ledger: LedgerReader) -> GraphLine:
    balance = balance_of_run(ledger, snapshot.run)
    if balance.planned_epsilon is None:
        return GraphLine(name=snapshot.source.name)
    return GraphLine(
        name=snapshot.source.name,
        nodes=balance.num_nodes,
        epsilon=balance.planned_epsilon,
        delta=balance.delta,
        spent_epsilon=balance.spent_epsilon,
        releases=len(balance.charges),
    )


def _queried_graphs(state: Path, session: str) -> list[GraphLine]:
    """Graphs other than that of training that a label party has queried."""
    return [
        GraphLine(
            name=f"graph {name[:8]}",
            test=facts.get("test"),
            epsilon=facts["epsilon"],
            delta=facts["delta"],
            spent_epsilon=facts["spent_epsilon"],
        )
        for name, facts in read_graph_notes(state / "cache").items()
        if name != session
    ]
