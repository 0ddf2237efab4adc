"""The graph behind its door: what a method may ask of edges, and nothing else.

    ChargedDoor   charge the ledger, then release: certified
    ClaimedDoor   noise as somebody else counts it, no ledger: never shown as certified
    OpenDoor      sums without noise, for epsilon = inf: no privacy
    ClosedDoor    nothing at all, for methods that read no edge

A door knows its graph, the fingerprint made of that very graph, and the account of that
fingerprint; they cannot be mixed up.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.clipped_sum import refuse_high_degrees, rounding_of
from vesper.mechanism.aggregations.grid import from_grid, to_grid
from vesper.mechanism.aggregations.partition import noisy_rows
from vesper.mechanism.fingerprint import fingerprint, refuse_directed
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation, graph_bytes, release_graph
from vesper.mechanism.release import NEIGHBOR_SUM, release
from vesper.mechanism.release_store import Arrays, ReleaseStore, no_check, release_once
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import Event
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.receipt import Receipt
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.privacy.relation import EdgeRelation, GraphRelation, NodeRelation

FloatRows = NDArray[np.float32]

ONE_EDGE = EdgeRelation()


class Door(Protocol):
    """Released neighbour sums of unit messages."""

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Sum `messages` (num_nodes, width), rows of norm at most 1, over neighbours, for all.

        Another `aggregation` than the sum is scaled to cost the same.
        """

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Give a graph of noisy edges; anything may be done with it. None: without noise."""

    def spending_summary(self) -> str:
        """Say what was spent of the budget, for people to see."""

    def uncertified_graph(self) -> Graph:
        """Give the graph itself, to methods that certify nothing."""


class ChargedDoor:
    """Every release is charged first.

    Args:
        graph: the private graph.
        ledger: the data party's ledger; the account of the graph is opened in it.
        budget: the budget of the graph.
        noise: where noise comes from.
        run: what the ledger writes beside the charges.
        relation: what two graphs differ by: one edge, or all edges of one node.
        release_store: where releases are kept, so that a run can go on after a crash; its `run` must be
            the name of that run alone. Without one, a release lives as long as the process.
        before_drawing: refuses, by raising, what must have been drawn before.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        ledger: Ledger,
        budget: Budget | None,
        noise: NoiseSource,
        run: str,
        relation: GraphRelation = ONE_EDGE,
        release_store: ReleaseStore | None = None,
        before_drawing: Callable[[], None] = no_check,
    ) -> None:
        self._graph, self._noise, self._run = graph, noise, run
        self._release_store, self._number, self._before_drawing = release_store, 0, before_drawing
        self._relation = relation
        refuse_directed(graph)
        if isinstance(relation, NodeRelation):
            refuse_high_degrees(graph, max_degree=relation.max_degree)
        name = fingerprint(graph, key=key_of(ledger))
        self._summary = (-1, "")
        self.account: Account = open_account(
            ledger, name, num_nodes=graph.num_nodes, budget=budget, relation=relation
        )

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Charge for a Gaussian release to all nodes, then make it."""
        grid = to_grid(messages)  # whatever is wrong with messages is found before paying
        aggregation.refuse(grid)
        event = self._relation.sums(
            noise_std=noise_std, rounding=rounding_of(grid.shape[1]), aggregation=aggregation.name
        )

        def draw(receipt: Receipt) -> Arrays:
            sums = release(
                self._graph,
                grid,
                None,
                event=event,
                receipt=receipt,
                fingerprint=self.account.graph,
                noise=self._noise,
                aggregation=aggregation,
            )
            return {"sums": sums}

        return self._release_once(event, draw)["sums"]

    def spending_summary(self) -> str:
        """Say what was spent of the budget."""
        releases = self.account.releases
        if releases != self._summary[0]:  # the conversion takes milliseconds, steps do too
            budget = self.account.budget
            limit = "" if budget is None else f" of {budget.epsilon:g}"
            self._summary = releases, f"epsilon {self.account.spent_epsilon():.3g}{limit}"
        return self._summary[1]

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Charge for a graph of noisy edges, then make it."""
        if perturbation is None:
            raise ValueError("a charged door gives no graph without noise")
        perturbation.refuse_many(self._graph.num_nodes)  # before paying

        def draw(receipt: Receipt) -> Arrays:
            noisy = release_graph(
                self._graph,
                perturbation,
                receipt=receipt,
                fingerprint=self.account.graph,
                noise=self._noise,
            )
            return {"indptr": noisy.indptr, "neighbors": noisy.neighbors}

        reserved_bytes = graph_bytes(perturbation.max_edges(self._graph), self._graph)
        arrays = self._release_once(perturbation.event, draw, reserved_bytes=reserved_bytes)
        return Graph(arrays["indptr"], arrays["neighbors"])

    def _release_once(
        self, event: Event, draw: Callable[[Receipt], Arrays], *, reserved_bytes: int = 0
    ) -> Arrays:
        """Draw for each event once; with a vault, once however often the process dies."""
        if self._release_store is None:
            return draw(self.account.charge(event, None, run=self._run))
        number, self._number = self._number, self._number + 1
        return release_once(
            self.account,
            self._release_store,
            event,
            draw,
            run=self._run,
            number=number,
            before_drawing=self._before_drawing,
            reserved_bytes=reserved_bytes,
        )

    def uncertified_graph(self) -> Graph:
        """Refuse: what is computed from the graph itself is not covered by the account."""
        raise ValueError("a charged door gives releases only, not the graph")


class ClaimedDoor:
    """Noisy sums that no account knows of: for baselines that count in another way."""

    def __init__(
        self, graph: Graph, *, noise: NoiseSource, release_store: ReleaseStore | None = None
    ) -> None:
        self._graph, self._noise = graph, noise
        self._release_store, self._number = release_store, 0

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Sum and add the noise asked for."""
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
        """Nothing that an account knows of."""
        return ""

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Refuse: noisy edges are always certified."""
        raise ValueError("a claimed door makes no graph of noisy edges, expected a charged one")

    def uncertified_graph(self) -> Graph:
        """Give the graph itself."""
        return self._graph


class OpenDoor:
    """No noise, no ledger, no privacy: epsilon = inf."""

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
        """Nothing that an account knows of."""
        return ""

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Give the graph as it is."""
        if perturbation is not None:
            raise ValueError("an open door adds no noise to edges, expected none to be asked for")
        return self._graph

    def uncertified_graph(self) -> Graph:
        """Give the graph itself."""
        return self._graph


class ClosedDoor:
    """For methods that promise to read no edge: they could not."""

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Refuse."""
        raise ValueError("a closed door gives nothing: the method promised to read no edge")

    def spending_summary(self) -> str:
        """Nothing."""
        return ""

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Refuse."""
        raise ValueError("a closed door gives nothing: the method promised to read no edge")

    def uncertified_graph(self) -> Graph:
        """Refuse."""
        raise ValueError("a closed door gives nothing: the method promised to read no edge")
