"""Doors: the only access of a method to the edges of a graph.

    ChargedDoor   charges the ledger, then releases: certified
    ClaimedDoor   noise as a published analysis counts it, no ledger: never reported as certified
    OpenDoor      sums without noise, for epsilon = inf: no privacy
    ClosedDoor    nothing at all, for methods that read no edge

A charged door opens the account of the name that the owner has given the graph, and records there
which version of the graph it holds. Which account that is never depends on the edges.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation, refuse_inexact_degrees
from vesper.mechanism.aggregations.grid import from_grid, to_grid
from vesper.mechanism.aggregations.partition import noisy_rows
from vesper.mechanism.aggregations.row_noise import refuse_high_degrees, rounding_of
from vesper.mechanism.fingerprint import refuse_directed
from vesper.mechanism.graph_version import version_of_graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation, release_graph
from vesper.mechanism.release import NEIGHBOR_SUM, release
from vesper.mechanism.release_store import Arrays, Draw, ReleaseStore, no_check, release_once
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import Event
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.overlap import GraphVersion
from vesper.privacy.ledger.receipt import Receipt
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.privacy.relation import GraphRelation, LabelRelation, NodeRelation

FloatRows = NDArray[np.float32]


class Door(Protocol):
    """Released neighbour sums of unit messages."""

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Sum `messages` over the neighbours of every node; (num_nodes, width) to the same.

        Rows of `messages` have norm at most 1. Aggregations other than the sum are scaled to cost
        the same.
        """

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Return a graph of noisy edges, free to use for anything. None: no noise."""

    def spending_summary(self) -> str:
        """Describe what was spent of the budget, for display."""

    def uncertified_graph(self) -> Graph:
        """Return the graph itself, for methods that certify nothing."""


class ChargedDoor:
    """Door that charges the ledger before every release.

    Args:
        graph: the private graph.
        account: of the graph's name, opened with `open_graph_account`.
        noise: where noise comes from.
        run: name of the run, recorded in the ledger with each charge.
        release_store: where releases are stored, so that a run can resume after a crash; `run` must
            then name this run only. Without a store, releases are lost with the process.
        before_drawing: called before new noise is drawn; raises to refuse, when this release must
            have been drawn before.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        account: Account,
        noise: NoiseSource,
        run: str,
        release_store: ReleaseStore | None = None,
        before_drawing: Callable[[], None] = no_check,
    ) -> None:
        if isinstance(account.relation, LabelRelation):
            raise ValueError("expected the account of a graph, got that of labels")
        self._graph, self.account, self._relation = graph, account, account.relation
        self._noise, self.run = noise, run
        self._release_store, self._number, self._before_drawing = release_store, 0, before_drawing
        self._summary = (-1, "")

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Charge for a Gaussian release to all nodes, then make it."""
        grid = to_grid(messages)  # bad messages are refused before anything is charged
        aggregation.refuse(grid)
        event = self._relation.sums(
            noise_std=noise_std, rounding=rounding_of(grid.shape[1]), aggregation=aggregation.name
        )

        def draw(receipt: Receipt, noise: NoiseSource) -> Arrays:
            sums = release(
                self._graph,
                grid,
                None,
                event=event,
                receipt=receipt,
                account=self.account.graph,
                noise=noise,
                aggregation=aggregation,
            )
            return {"sums": sums}

        return self._release_once(event, draw)["sums"]

    def spending_summary(self) -> str:
        """Describe what was spent of the budget."""
        releases = self.account.releases
        if releases != self._summary[0]:  # converting takes milliseconds, as long as a step
            budget = self.account.budget
            limit = "" if budget is None else f" of {budget.epsilon:g}"
            self._summary = releases, f"epsilon {self.account.spent_epsilon():.3g}{limit}"
        return self._summary[1]

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Charge for a graph of noisy edges, then make it."""
        if perturbation is None:
            raise ValueError("a charged door never returns a graph without noise")
        perturbation.refuse_many(self._graph.num_nodes)  # before anything is charged

        def draw(receipt: Receipt, noise: NoiseSource) -> Arrays:
            noisy = release_graph(
                self._graph,
                perturbation,
                receipt=receipt,
                account=self.account.graph,
                noise=noise,
            )
            return {"indptr": noisy.indptr, "neighbors": noisy.neighbors}

        arrays = self._release_once(perturbation.event, draw)
        return Graph(arrays["indptr"], arrays["neighbors"])

    def _release_once(self, event: Event, draw: Draw) -> Arrays:
        """Draw once per event; with a release store, once even if the process dies in between."""
        if self._release_store is None:
            return draw(self.account.charge(event, None, run=self.run), self._noise)
        number, self._number = self._number, self._number + 1
        return release_once(
            self.account,
            self._release_store,
            event,
            draw,
            noise=self._noise,
            run=self.run,
            number=number,
            before_drawing=self._before_drawing,
        )

    def uncertified_graph(self) -> Graph:
        """Refuse: what is computed from the graph itself is not covered by the account."""
        raise ValueError("a charged door gives out releases only, not the graph")


def open_graph_account(
    graph: Graph,
    name: str,
    *,
    ledger: Ledger,
    budget: Budget | None = None,
    relation: GraphRelation | None = None,
    simulated: bool,
) -> Account:
    """Open the account of a graph's name, after checking that claims cover the graph.

    It records which version of the graph is opened.

    Raises:
        InputError: the graph is not undirected, breaks the promised degree, or the name has another
            budget.
    """
    return open_account(
        ledger,
        name,
        num_nodes=graph.num_nodes,
        version=checked_version(graph, ledger=ledger, relation=relation),
        budget=budget,
        relation=relation,
        simulated=simulated,
    )


def checked_version(
    graph: Graph, *, ledger: Ledger, relation: GraphRelation | None
) -> GraphVersion:
    """Describe a graph for its ledger, after checking that claims cover it.

    This reads all edges, so it belongs before a transaction, which others wait for.

    Raises:
        InputError: the graph is not undirected, has a degree too large to be summed exactly, or
            breaks the promised degree.
    """
    refuse_directed(graph)
    refuse_inexact_degrees(graph)
    if isinstance(relation, NodeRelation):
        refuse_high_degrees(graph, max_degree=relation.max_degree)
    return version_of_graph(graph, key=key_of(ledger))


class ClaimedDoor:
    """Door that adds noise without a ledger, for baselines with their own privacy analysis."""

    def __init__(
        self, graph: Graph, *, noise: NoiseSource, release_store: ReleaseStore | None = None
    ) -> None:
        self._graph, self._noise = graph, noise
        self._release_store, self._number = release_store, 0

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Sum and add noise of the given size."""
        number, self._number = self._number, self._number + 1
        stored = self._release_store.find(number) if self._release_store else None
        if stored is not None:
            return stored["sums"]
        grid = to_grid(messages)
        sums = noisy_rows(
            aggregation, self._graph, grid, None, noise=self._noise, noise_std=noise_std
        )
        if self._release_store:
            self._release_store.put(number, {"sums": sums})
        return sums

    def spending_summary(self) -> str:
        """Return an empty text: there is no account."""
        return ""

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Refuse: noisy edges are always certified."""
        raise ValueError("a claimed door releases no noisy graph; use a charged door")

    def uncertified_graph(self) -> Graph:
        """Return the graph itself."""
        return self._graph


class OpenDoor:
    """Door without noise, ledger or privacy: epsilon = inf."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Sum on the same grid, without noise."""
        if noise_std != 0:
            raise ValueError(f"an open door adds no noise, expected noise_std=0, got {noise_std}")
        values = aggregation.aggregate(self._graph, to_grid(messages), None)
        return from_grid(values, steps=aggregation.steps)  # (num_nodes, width)

    def spending_summary(self) -> str:
        """Return an empty text: there is no account."""
        return ""

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Return the graph as it is."""
        if perturbation is not None:
            raise ValueError("an open door adds no noise to edges, expected perturbation=None")
        return self._graph

    def uncertified_graph(self) -> Graph:
        """Return the graph itself."""
        return self._graph


class ClosedDoor:
    """Door that gives out nothing, for methods that promise to read no edge."""

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Refuse."""
        raise ValueError("a closed door gives out nothing: the method promised to read no edge")

    def spending_summary(self) -> str:
        """Return an empty text: nothing is spent."""
        return ""

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Refuse."""
        raise ValueError("a closed door gives out nothing: the method promised to read no edge")

    def uncertified_graph(self) -> Graph:
        """Refuse."""
        raise ValueError("a closed door gives out nothing: the method promised to read no edge")
