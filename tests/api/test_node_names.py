"""Ids, numbers and masks as names of nodes; labels aligned by the index of a pandas column."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from vesper.api.node_names import NodeNames
from vesper.errors import InputError
from vesper.graph.ids import Ids

NAMED = NodeNames(4, Ids(pa.array(["a", "b", "c", "d"], type=pa.large_string())))
NUMBERED = NodeNames(4)
NODES = np.array([2, 0])


def unchanged(values: NDArray[Any], nodes: NDArray[np.int64]) -> NDArray[Any]:
    return values


def test_ids_name_nodes_in_the_order_given() -> None:
    for given in (
        ["c", "a"],
        np.array(["c", "a"]),
        pandas.Series(["c", "a"]),
        pa.array(["c", "a"]),
    ):
        assert NAMED.numbers(given, "train").tolist() == [2, 0]
    assert NUMBERED.numbers([2, 0], "train").tolist() == [2, 0]
    assert NAMED.numbers([], "train").tolist() == []


def test_masks_are_by_row_or_by_their_index() -> None:
    mask = pandas.Series([True, False, True], index=["d", "a", "b"])
    assert sorted(NAMED.numbers(mask, "train")) == [1, 3]
    assert NAMED.numbers([True, False, False, True], "train").tolist() == [0, 3]
    shuffled = pandas.Series([True, False, True, False]).iloc[[1, 0, 3, 2]]
    assert sorted(NUMBERED.numbers(shuffled, "train")) == [0, 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", "z"], r"train: 1 ids are not nodes of the graph \(first 1: z\)"),
        ([1, 2], "train: expected text like the ids of the nodes, got whole numbers"),
        ([["a"], ["b"]], r"got shape \(2, 1\); pass one of its columns"),
        ([True], "train: expected a mask of 4 nodes, got 1"),
    ],
)
def test_unusable_names_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NAMED.numbers(given, "train")


@pytest.mark.parametrize(
    "labels",
    [
        pandas.Series([10, 11, 12, 13], index=["a", "b", "c", "d"]),
        pandas.Series([12, 10], index=["c", "a"]),
        pandas.Series([12, 10, 1, 1], index=["c", "a", "z", "z"]),
        pandas.DataFrame({"label": [13, 12, 11, 10]}, index=["d", "c", "b", "a"]),
        {"a": 10, "c": 12},
        [10, 11, 12, 13],
        pandas.Series([10, 11, 12, 13]),
    ],
    ids=["in order", "some", "others", "frame", "mapping", "list", "without index"],
)
def test_labels_are_aligned_by_id(labels: Any) -> None:
    assert NAMED.labels_of(labels, NODES, unchanged).tolist() == [12, 10]


def test_labels_are_aligned_by_number_where_there_are_no_ids() -> None:
    shuffled = pandas.Series([10, 11, 12, 13]).iloc[[3, 1, 0, 2]]
    assert NUMBERED.labels_of(shuffled, NODES, unchanged).tolist() == [12, 10]
    held_out = pandas.Series([10, 11, 12, 13]).iloc[[0, 2]]  # index 0, 2; in another order
    assert NUMBERED.labels_of(held_out, NODES, unchanged, may_be_per_id=True).tolist() == [12, 10]
    in_order = pandas.Series([12, 10])
    assert NUMBERED.labels_of(in_order, NODES, unchanged, may_be_per_id=True).tolist() == [12, 10]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pandas.Series([1, 2, 3], index=["a", "c", "c"]), r"1 rows .* name a node again \(first 1"),
        (pandas.Series([1, 2], index=["a", "b"]), r"1 nodes have no label .* \(first 1: c\)"),
        (pandas.Series([1, 2], index=["a", "z"]), r"1 nodes have no label .* \(first 1: c\)"),
        (pandas.Series([1, 2], index=[7, 8]), "labels: index: expected text like the ids"),
        ({"a": 1}, r"1 nodes have no label in the index \(first 1: c\)"),
    ],
)
def test_labels_that_cannot_be_aligned_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NAMED.labels_of(labels, NODES, unchanged)


def test_a_graph_stands_for_its_nodes() -> None:
    features = np.ones((4, 2), dtype=np.float32)
    data = SimpleNamespace(edge_index=np.zeros((2, 0)), x=features.astype(np.float64), num_nodes=4)
    assert NUMBERED.queried(data, features).tolist() == [0, 1, 2, 3]
    assert NUMBERED.queried([2], features).tolist() == [2]
    for change in ({"x": features + 1}, {"x": features[:3]}, {"x": None, "num_nodes": 3}):
        with pytest.raises(InputError, match=r"use on_graph\(graph, ...\) for a later graph"):
            NUMBERED.queried(SimpleNamespace(**vars(data) | change), features)
    with pytest.raises(InputError, match="expected a graph with test_mask, found none"):
        NUMBERED.test_nodes(data, None)
    both = SimpleNamespace(edge_index=data.edge_index, test_mask="mask", y="labels")
    assert NUMBERED.test_nodes(both, None) == ("mask", "labels")
    assert NUMBERED.test_nodes([1], "labels") == ([1], "labels")
