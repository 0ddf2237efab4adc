"""The graph behind its door: what a method may ask of edges, and nothing else.

    ChargedDoor   charge the ledger, then release: certified
    OpenDoor      sums without noise, for epsilon = inf: no privacy

A door knows its graph, the fingerprint made of that very graph, and the account of that
fingerprint; they cannot be mixed up.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vesper.graph.graph import Graph
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.grid import STEPS, to_grid
from vesper.mechanism.neighbor_sum import NeighborSum
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.release import release
from vesper.privacy.account import Account, open_account
from vesper.privacy.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger

Rows = NDArray[np.float32]


class Door(Protocol):
    """Released neighbour sums of unit messages."""

    def release(self, messages: Rows, *, noise_std: float) -> Rows:
        """Sum `messages` (num_nodes, width), rows of norm at most 1, over neighbours, for all."""

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
    """

    def __init__(
        self, graph: Graph, *, ledger: Ledger, budget: Budget | None, noise: NoiseSource, run: str
    ) -> None:
        self._graph, self._noise, self._run = graph, noise, run
        name = fingerprint(graph, key=key_of(ledger))
        self.account: Account = open_account(ledger, name, num_nodes=graph.num_nodes, budget=budget)

    def release(self, messages: Rows, *, noise_std: float) -> Rows:
        """Charge for a Gaussian release to all nodes, then make it."""
        grid = to_grid(messages)  # whatever is wrong with messages is found before paying
        event = GaussianRelease(noise_std=noise_std)
        receipt = self.account.charge(event, None, run=self._run)
        return release(
            self._graph,
            grid,
            None,
            event=event,
            receipt=receipt,
            fingerprint=self.account.graph,
            noise=self._noise,
        )

    def uncertified_graph(self) -> Graph:
        """Give the graph itself: what is computed from it is not covered by the account."""
        return self._graph


class OpenDoor:
    """No noise, no ledger, no privacy: epsilon = inf."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def release(self, messages: Rows, *, noise_std: float) -> Rows:
        """Sum on the same grid, without noise."""
        if noise_std != 0:
            raise ValueError(f"an open door adds no noise, expected noise_std=0, got {noise_std}")
        sums = NeighborSum().aggregate(self._graph, to_grid(messages), None)
        return sums.astype(np.float32) / np.float32(STEPS)  # (num_nodes, width)

    def uncertified_graph(self) -> Graph:
        """Give the graph itself."""
        return self._graph
