"""Nodes and labels as users give them: node numbers or masks, arrays or mappings."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.foreign import as_array

Nodes = NDArray[np.int64]


def node_numbers(nodes: Any, what: str, *, num_nodes: int) -> Nodes:
    """Return node numbers in the order given; a mask yields its nodes in ascending order.

    >>> node_numbers([True, False, True], "train", num_nodes=3).tolist()
    [0, 2]
    """
    given = as_array(nodes, what)
    if given.ndim == 0:
        raise InputError(
            f"{what}: expected a list of node numbers or a mask, got {type(nodes).__name__}; "
            f"pass a list or an array"
        )
    if given.ndim != 1:
        columns = "; pass one of its columns" if given.ndim == 2 else ""
        raise InputError(
            f"{what}: expected a list of node numbers or a mask, got shape {given.shape}{columns}"
        )
    if given.dtype == np.bool_:
        if len(given) != num_nodes:
            raise InputError(
                f"{what}: expected a mask of {num_nodes} nodes, got {len(given)}; "
                f"give one value per node, or node numbers"
            )
        return np.flatnonzero(given)
    if len(given) == 0:
        return np.zeros(0, dtype=np.int64)
    if not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"{what}: expected whole node numbers or a mask, got {given.dtype}")
    wrong = (given < 0) | (given >= num_nodes)
    if wrong.any():
        raise InputError(
            f"{what}: expected node numbers from 0 to {num_nodes - 1}, {int(wrong.sum())} are "
            f"outside ({first_three(given[wrong])}); node numbers are row numbers of the features"
        )
    return given.astype(np.int64)


def distinct_nodes(nodes: Any, what: str, *, num_nodes: int) -> Nodes:
    """Return node numbers; refuse duplicates and an empty list."""
    return refuse_repeated(
        node_numbers(nodes, what, num_nodes=num_nodes), what, num_nodes=num_nodes
    )


def refuse_repeated(numbers: Nodes, what: str, *, num_nodes: int) -> Nodes:
    """Return node numbers; refuse duplicates and an empty list."""
    if len(numbers) == 0:
        raise InputError(f"{what}: expected at least one node, got none")
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) < len(numbers):
        repeated = values[counts > 1]
        is_mask = len(numbers) == num_nodes and values[-1] <= 1
        remedy = "give a mask as booleans" if is_mask else "list each once"
        raise InputError(
            f"{what}: {len(repeated)} nodes are listed more than once ({first_three(repeated)}); "
            f"{remedy}"
        )
    return numbers


def as_label_array(labels: Any) -> NDArray[Any]:
    """Return labels as a 1-d array; values of a list keep their types, so missing ones are found.

    >>> as_label_array(["a", float("nan")]).tolist()
    ['a', nan]
    """
    values = as_array(labels, "labels")
    if isinstance(labels, list | tuple) and values.dtype.kind == "U":
        values = as_array(np.array(labels, dtype=object), "labels")  # numpy turned all into text
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def labels_at(
    labels: Any,
    nodes: Nodes,
    read: Callable[[NDArray[Any], Nodes], NDArray[Any]],
    *,
    num_nodes: int,
) -> NDArray[Any]:
    """Return the labels of some nodes.

    Args:
        labels: one value per node, or a mapping from node number to label.
        nodes: nodes whose labels are wanted.
        read: converts labels of nodes to one form.
        num_nodes: number of nodes of the graph.
    """
    if isinstance(labels, Mapping):
        missing = [int(node) for node in nodes if int(node) not in labels]
        if missing:
            raise InputError(
                f"labels: {len(missing)} nodes have no label ({first_three(missing)}); "
                f"add their labels or leave these nodes out"
            )
        return read(as_label_array([labels[int(node)] for node in nodes]), nodes)
    whole = as_label_array(labels)
    if whole.shape != (num_nodes,):
        raise InputError(
            f"labels: expected one value per node, shape ({num_nodes},), got {whole.shape}; "
            f"values of unlabelled nodes are ignored"
        )
    return read(whole[nodes], nodes)
