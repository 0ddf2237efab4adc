"""Names of the nodes of one graph: ids of the user, or node numbers where there are none.

A pandas column that names its rows by an index of its own is read by that index, never by position.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.api.node_ids import Nodes, as_label_array, labels_at, node_numbers
from vesper.errors import InputError, first_three
from vesper.graph.foreign import as_array
from vesper.graph.frames import id_column, index_of, part_of
from vesper.graph.ids import Ids

ReadLabels = Callable[[NDArray[Any], Nodes], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class NodeNames:
    """How users name the nodes of a graph: by id, or by number where there are no ids."""

    num_nodes: int
    ids: Ids | None = None

    def numbers(self, nodes: Any, what: str) -> Nodes:
        """Return node numbers in the order given; a mask yields its nodes in ascending order."""
        index = index_of(nodes)
        if index is not None:  # a pandas column with an index of its own
            given = as_array(nodes, what)
            if given.dtype == np.bool_:
                return self._of_ids(index[given], what)
        if self.ids is None:
            return node_numbers(nodes, what, num_nodes=self.num_nodes)
        given = as_array(nodes, what)
        if given.dtype == np.bool_:
            return node_numbers(given, what, num_nodes=self.num_nodes)
        if given.ndim != 1:
            return node_numbers(given, what, num_nodes=self.num_nodes)  # refuses the shape
        return self._of_ids(given, what)

    def queried(self, nodes: Any, features: NDArray[Any]) -> Nodes:
        """Return the nodes that predictions are wanted for; a PyG `Data` stands for all of them."""
        if part_of(nodes, "edge_index") is None:
            return self.numbers(nodes, "ids")
        own = part_of(nodes, "x")
        rows = None if own is None else as_array(own, "ids.x")
        is_same = rows is None or (
            rows.shape == features.shape
            and np.array_equal(rows.astype(features.dtype, copy=False), features)
        )
        if not is_same or (rows is None and part_of(nodes, "num_nodes") != self.num_nodes):
            raise InputError(
                "ids: expected the graph that the model was fitted on, or some of its nodes, got a "
                "graph with other nodes or features; use on_graph(graph, ...) for a later graph"
            )
        return np.arange(self.num_nodes)

    def test_nodes(self, ids: Any, labels: Any) -> tuple[Any, Any]:
        """Return nodes and labels to evaluate; a PyG `Data` may hold both."""
        if part_of(ids, "edge_index") is None:
            return ids, labels
        mask = part_of(ids, "test_mask")
        if mask is None:
            raise InputError("ids: expected a graph with test_mask, found none; pass node numbers")
        return mask, part_of(ids, "y") if labels is None else labels

    def labels_of(
        self, labels: Any, nodes: Nodes, read: ReadLabels, *, may_be_per_id: bool = False
    ) -> NDArray[Any]:
        """Return the labels of some nodes.

        Args:
            labels: one value per node, a mapping from id or number to label, or a pandas column,
                whose index names the nodes.
            nodes: nodes whose labels are wanted.
            read: converts labels of nodes to one form.
            may_be_per_id: whether as many labels as nodes are taken in the order of the nodes.
        """
        if isinstance(labels, Mapping):
            keys, values = list(labels), list(labels.values())
            if self.ids is not None and keys:
                return self._aligned(np.array(keys), values, nodes, read)
            return labels_at(labels, nodes, read, num_nodes=self.num_nodes)
        index = index_of(labels)
        if index is not None:
            return self._aligned(index, as_label_array(labels), nodes, read)
        if may_be_per_id and (in_order := as_label_array(labels)).shape == (len(nodes),):
            return read(in_order, nodes)
        return labels_at(labels, nodes, read, num_nodes=self.num_nodes)

    def _aligned(
        self, index: NDArray[Any], values: Any, nodes: Nodes, read: ReadLabels
    ) -> NDArray[Any]:
        """Return labels by id; labels of other ids than those of nodes are ignored."""
        numbers = self._positions(index, "labels: index")
        of_nodes = np.flatnonzero(numbers >= 0)
        row_of = np.full(self.num_nodes, -1, dtype=np.int64)
        row_of[numbers[of_nodes]] = of_nodes
        repeated = index[of_nodes[row_of[numbers[of_nodes]] != of_nodes]]
        if len(repeated):
            raise InputError(
                f"labels: expected one label per node, {len(repeated)} rows of the index name a "
                f"node again ({first_three(repeated)}); keep one row per node"
            )
        rows = row_of[nodes]
        if (rows < 0).any():
            missing = nodes[rows < 0]
            named = missing if self.ids is None else self.ids.take(missing[:3])
            raise InputError(
                f"labels: {len(missing)} nodes have no label in the index ({first_three(named)}); "
                f"add their labels or leave these nodes out"
            )
        if isinstance(values, list):
            return read(as_label_array([values[row] for row in rows]), nodes)
        return read(values[rows], nodes)

    def _of_ids(self, given: NDArray[Any], what: str) -> Nodes:
        if self.ids is None:
            return node_numbers(given, what, num_nodes=self.num_nodes)
        numbers = self._positions(given, what)
        unknown = given[numbers < 0]
        if len(unknown):
            raise InputError(
                f"{what}: {len(unknown)} ids are not nodes of the graph ({first_three(unknown)}); "
                f"nodes are named by the ids that were given with the features"
            )
        return numbers

    def _positions(self, given: NDArray[Any], what: str) -> Nodes:
        """Return node numbers, or -1 where there is no such node."""
        if len(given) == 0:
            return np.zeros(0, dtype=np.int64)
        wanted, are_integers = id_column(given, what), self.ids is None or self.ids.are_integers
        if pa.types.is_integer(wanted.type) != are_integers:
            expected, got = ("whole numbers", "text") if are_integers else ("text", "whole numbers")
            raise InputError(
                f"{what}: expected {expected} like the ids of the nodes, got {got}; convert them"
            )
        if self.ids is not None:
            return self.ids.positions(wanted)
        numbers = np.asarray(wanted, dtype=np.int64)
        return np.where((numbers >= 0) & (numbers < self.num_nodes), numbers, -1)
