"""Linear aggregations: weighted sums over a node and its neighbours.

    aggregated[v] = self_weight[v] message[v] + sum over u in N(v) of edge_weight[u, v] message[u]

An aggregation defines the weights of a graph (`weigh`) and how far one edge can move its output
(`edge_sensitivity`); the matrix and the product follow from the weights. If the weights are
functions of degrees only, `self_weight` and `edge_weight` are vectorised functions that layers on
sampled subgraphs use as well.

Row normalisation is here too:

    normalized[v] = norm row[v] / ||row[v]||_2,    and 0 for a zero row
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.graph import Graph
from vesper.privacy.accounting.safe_numbers import expect_positive

Floats = NDArray[np.float64]
Degrees = NDArray[np.int64]

NORM_SLACK = 1e-5
"""How much longer than 1 rows may be, because of float32 rounding, as in `grid`."""


class LinearAggregation(ABC):
    """A matrix computed from the graph, applied to the messages."""

    @abstractmethod
    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Return self weights (num_nodes,) and edge weights in the order of `graph.neighbors`."""

    @abstractmethod
    def edge_sensitivity(self) -> float:
        """Bound the l2 move of the whole output when one edge changes, for messages of norm 1."""

    def operator(self, graph: Graph) -> Floats:
        """Return the dense matrix, (num_nodes, num_nodes); for small graphs."""
        self_weights, edge_weights = self.weigh(graph)
        matrix = np.diag(self_weights)
        matrix[receivers_of(graph), graph.neighbors] = edge_weights
        return matrix

    def aggregate(self, graph: Graph, messages: Floats) -> Floats:
        """Apply the matrix without building it, (num_nodes, width).

        Raises:
            InputError: messages longer than 1, or not one for each node.
        """
        refuse_long_rows(messages, num_nodes=graph.num_nodes)
        self_weights, edge_weights = self.weigh(graph)
        receivers = receivers_of(graph)  # (2 * num_edges,)
        out: Floats = self_weights[:, None] * messages  # (num_nodes, width)
        for column in range(messages.shape[1]):  # one column at a time, to save memory
            weighted = edge_weights * messages[graph.neighbors, column]  # (2 * num_edges,)
            out[:, column] += np.bincount(receivers, weights=weighted, minlength=graph.num_nodes)
        return out


class DegreeWeights(LinearAggregation):
    """Weights that are functions of the degrees of sender and receiver."""

    moves_neighbors: bool
    """Whether an edge also moves rows of the endpoints' other neighbours."""

    @abstractmethod
    def self_weight(self, degrees: Degrees) -> Floats:
        """Return the weight of the own message, elementwise."""

    @abstractmethod
    def edge_weight(self, sender_degrees: Degrees, receiver_degrees: Degrees) -> Floats:
        """Return the weight of a neighbour's message, elementwise."""

    def weigh(self, graph: Graph) -> tuple[Floats, Floats]:
        """Look up the degrees and apply the two functions."""
        degrees = degrees_of(graph)  # (num_nodes,)
        senders, receivers = degrees[graph.neighbors], degrees[receivers_of(graph)]
        return self.self_weight(degrees), self.edge_weight(senders, receivers)


def degrees_of(graph: Graph) -> Degrees:
    """Degrees of all nodes, (num_nodes,)."""
    return np.diff(graph.indptr)


def receivers_of(graph: Graph) -> NDArray[np.int64]:
    """Node whose row each entry of `graph.neighbors` is in, (2 * num_edges,)."""
    return np.repeat(np.arange(graph.num_nodes), degrees_of(graph))


def refuse_long_rows(messages: Floats, *, num_nodes: int) -> None:
    """Refuse messages of norm above 1 + NORM_SLACK; dimensions before the last two are batches."""
    if messages.ndim < 2 or messages.shape[-2] != num_nodes:
        raise InputError(
            f"messages: expected one row for each of {num_nodes} nodes, got {messages.shape}"
        )
    norms = np.sqrt(np.square(messages, dtype=np.float64).sum(axis=-1))  # (.., num_nodes)
    long = np.argwhere(~(norms <= 1 + NORM_SLACK))[:, -1]  # NaN counts as long
    if len(long):
        raise InputError(
            f"messages: expected rows of norm at most 1, got {len(long)} longer or not finite "
            f"({first_three(long)}); normalise them first"
        )


def rounded_up(value: float) -> float:
    """Round up slightly, to cover the rounding errors of up to thirty operations."""
    return value * (1 + 2.0**-48)


def normalize_rows(rows: Floats, *, norm: float = 1.0) -> Floats:
    """Scale each row to length `norm`; (num_nodes, width) to the same.

    | row | result |
    | --- | --- |
    | zero, as ReLU may produce | zero; the paper divides by 0 |
    | so short that its square underflows | length `norm` |
    | NaN or infinite | InputError |

    >>> normalize_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    expect_positive("norm", norm)
    broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(broken):
        raise InputError(
            f"rows: expected finite numbers, got {len(broken)} rows that are not finite "
            f"({first_three(broken)}); the model that produces them has diverged"
        )
    largest = np.abs(rows).max(axis=1, initial=0.0)[:, None]  # (num_nodes, 1)
    safe = rows / np.where(largest > 0, largest, 1.0)  # entries in [-1, 1]: no square underflows
    lengths = np.sqrt(np.square(safe).sum(axis=1))[:, None]  # (num_nodes, 1)
    scaled: Floats = norm * safe / np.where(lengths > 0, lengths, 1.0)
    return scaled
