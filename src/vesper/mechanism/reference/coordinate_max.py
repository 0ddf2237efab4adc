"""Coordinate-wise maximum over neighbours (claim S-MAX), as in GraphSAGE's max pooling.

aggregated[v]_i = max(floor[v]_i, max over u in N(v) of message[u]_i)
"""

import math
from enum import Enum

import numpy as np

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.mechanism.reference.linear import Floats, degrees_of, refuse_long_rows


class Floor(Enum):
    """Row that a node starts from before taking the maximum over neighbours."""

    ZERO = "zero"
    """0 in every coordinate."""
    OWN_MESSAGE = "own message"
    """The message that the node sends to others."""
    OWN_ROW = "own row"
    """Another edge-free row of norm at most 1, such as W_1 h_v when messages are W_2 h_v."""


class CoordinateMax:
    """Maximum of each coordinate over neighbours, with a floor.

    Claim: S-MAX. One edge moves the output by at most sqrt 2 with floor ZERO, 2 with OWN_MESSAGE,
        2 sqrt 2 with OWN_ROW.
    Relation: differ by one edge; any graphs.
    Assumes (caller verifies): messages and own rows do not depend on edges.
    Moves: at most two rows, those of the endpoints; a message below the maximum moves none.
    Tight: yes, two nodes, for each floor.
    Proof: docs/claims/S-MAX.md.

    Raises:
        InputError: rows longer than 1, own rows given without OWN_ROW, or missing with it.
    """

    def __init__(self, floor: Floor = Floor.ZERO) -> None:
        self.floor = floor

    def aggregate(self, graph: Graph, messages: Floats, own: Floats | None = None) -> Floats:
        """Aggregate (.., num_nodes, width) to the same; leading dimensions are batches."""
        refuse_long_rows(messages, num_nodes=graph.num_nodes)
        out = self._start(graph, messages, own)
        connected = np.flatnonzero(degrees_of(graph))  # reduceat cannot take an empty row
        if len(connected):
            received = messages[..., graph.neighbors, :]  # (.., 2 * num_edges, width)
            largest = np.maximum.reduceat(received, graph.indptr[connected], axis=-2)
            out[..., connected, :] = np.maximum(out[..., connected, :], largest)
        return out

    def edge_sensitivity(self) -> float:
        """Return sqrt 2, 2 or 2 sqrt 2, by floor."""
        bounds = {Floor.ZERO: math.sqrt(2), Floor.OWN_MESSAGE: 2.0, Floor.OWN_ROW: math.sqrt(8)}
        return bounds[self.floor]

    def _start(self, graph: Graph, messages: Floats, own: Floats | None) -> Floats:
        if (own is not None) != (self.floor is Floor.OWN_ROW):
            raise InputError(
                f"own: expected rows if and only if the floor is OWN_ROW, got floor {self.floor}"
            )
        if own is not None:
            refuse_long_rows(own, num_nodes=graph.num_nodes)
            return own.copy()
        return np.zeros_like(messages) if self.floor is Floor.ZERO else messages.copy()
