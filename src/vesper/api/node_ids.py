"""Nodes as users name them: by number, or by a mask over all nodes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError, first_three
from vesper.graph.foreign import as_array

Nodes = NDArray[np.int64]


def node_numbers(nodes: Any, what: str, *, num_nodes: int) -> Nodes:
    """Give node numbers, in the order given; a mask gives its nodes in ascending order.

    >>> node_numbers([True, False, True], "train", num_nodes=3).tolist()
    [0, 2]
    """
    given = as_array(nodes, what)
    if given.ndim == 0:
        raise InputError(
            f"{what}: expected a row of node numbers or a mask, got {type(nodes).__name__}; "
            f"give a list or an array"
        )
    if given.ndim != 1:
        columns = "; give one of its columns" if given.ndim == 2 else ""
        raise InputError(
            f"{what}: expected a row of node numbers or a mask, got shape {given.shape}{columns}"
        )
    if given.dtype == np.bool_:
        if len(given) != num_nodes:
            raise InputError(
                f"{what}: expected a mask of {num_nodes} nodes, got {len(given)}; "
                f"give one value a node, or node numbers"
            )
        return np.flatnonzero(given)
    if len(given) == 0:
        return np.zeros(0, dtype=np.int64)
    if not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"{what}: expected whole node numbers or a mask, got {given.dtype}")
    wrong = (given < 0) | (given >= num_nodes)
    if wrong.any():
        raise InputError(
            f"{what}: expected node numbers from 0 to {num_nodes - 1}, {int(wrong.sum())} are not "
            f"({first_three(given[wrong])}); node numbers are rows of the features"
        )
    return given.astype(np.int64)


def distinct_nodes(nodes: Any, what: str, *, num_nodes: int) -> Nodes:
    """Give node numbers; refuse one that is named twice, and none at all."""
    numbers = node_numbers(nodes, what, num_nodes=num_nodes)
    if len(numbers) == 0:
        raise InputError(f"{what}: expected at least one node, got none")
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) < len(numbers):
        repeated = values[counts > 1]
        is_mask = len(numbers) == num_nodes and values[-1] <= 1
        remedy = "give a mask as booleans" if is_mask else "name each once"
        raise InputError(
            f"{what}: {len(repeated)} nodes are named more than once ({first_three(repeated)}); "
            f"{remedy}"
        )
    return numbers


def as_label_array(labels: Any) -> NDArray[Any]:
    """Give labels as a row; those of a list stay what they are, so that a missing one is seen.

    >>> as_label_array(["a", float("nan")]).tolist()
    ['a', nan]
    """
    values = as_array(labels, "labels")
    if isinstance(labels, list | tuple) and values.dtype.kind == "U":
        values = as_array(np.array(labels, dtype=object), "labels")  # numpy made text of all
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def labels_at(
    labels: Any,
    nodes: Nodes,
    read: Callable[[NDArray[Any], Nodes], NDArray[Any]],
    *,
    num_nodes: int,
) -> NDArray[Any]:
    """Give the labels of these nodes, from one value a node or a mapping of node to label.

    Args:
        labels: these.
        nodes: whose labels are wanted.
        read: brings labels of nodes to one form.
        num_nodes: of the graph.
    """
    if isinstance(labels, Mapping):
        missing = [int(node) for node in nodes if int(node) not in labels]
        if missing:
            raise InputError(
                f"labels: {len(missing)} nodes have none ({first_three(missing)}); "
                f"give them a label or leave them out of train and validation"
            )
        return read(as_label_array([labels[int(node)] for node in nodes]), nodes)
    whole = as_label_array(labels)
    if whole.shape != (num_nodes,):
        raise InputError(
            f"labels: expected one value a node, shape ({num_nodes},), got {whole.shape}; "
            f"values of unlabelled nodes are not looked at"
        )
    return read(whole[nodes], nodes)
