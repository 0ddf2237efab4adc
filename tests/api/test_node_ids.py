"""Node numbers, masks and labels as users give them."""

from typing import Any

import numpy as np
import pytest
import torch

from vesper.api.node_ids import distinct_nodes, labels_at, node_numbers
from vesper.api.targets import ClassTargets
from vesper.errors import InputError


class NotAvailable:
    """Value that is neither equal nor unequal to itself, like `pandas.NA`."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return self

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize(
    "nodes",
    [[3, 1], np.array([3, 1], dtype=np.int32), torch.tensor([3, 1]), range(3, 0, -2)],
    ids=["list", "numpy", "torch", "range"],
)
def test_numbers_keep_their_order(nodes: Any) -> None:
    numbers = node_numbers(nodes, "ids", num_nodes=4)
    assert numbers.tolist() == [3, 1]
    assert numbers.dtype == np.int64


def test_masks_and_empty_lists() -> None:
    assert node_numbers(torch.tensor([True, False, True]), "ids", num_nodes=3).tolist() == [0, 2]
    assert node_numbers([], "ids", num_nodes=3).tolist() == []


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([True, False], "train: expected a mask of 4 nodes, got 2"),
        ([0.5], "train: expected whole node numbers or a mask, got float64"),
        (
            [[0, 1]],
            r"train: expected a list of node numbers or a mask, got shape \(1, 2\); pass one",
        ),
        (3, r"train: expected a list of node numbers or a mask, got int; pass a list"),
        ({0, 1}, "got set; pass a list or an array"),
        ([0, 1, 1, 0], "2 nodes are listed more than once .* give a mask as booleans"),
        ([0, 4, -1], r"from 0 to 3, 2 are outside \(first 2: 4, -1\)"),
        ([0, 1, 0], r"1 nodes are listed more than once \(first 1: 0\)"),
        ([], "expected at least one node"),
    ],
)
def test_wrong_nodes_are_refused(nodes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        distinct_nodes(nodes, "train", num_nodes=4)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 2, 3], [1, 3]),
        (np.array([np.nan, 1.0, np.nan, 3.0]), [1, 3]),
        (torch.tensor([[0], [1], [2], [3]]), [1, 3]),
        (["a", "b", "c", "d"], ["b", "d"]),
        (np.array([None, "b", None, "d"], dtype=object), ["b", "d"]),
        ({1: "b", 3: "d"}, ["b", "d"]),
        ([True, True, False, False], [True, False]),
    ],
)
def test_labels_of_some_nodes(labels: Any, expected: list[Any]) -> None:
    assert (
        labels_at(labels, np.array([1, 3]), ClassTargets().read, num_nodes=4).tolist() == expected
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], r"labels: expected one value per node, shape \(4,\), got \(2,\)"),
        (np.zeros((4, 2)), r"got \(4, 2\)"),
        ({1: 0}, r"1 nodes have no label \(first 1: 3\)"),
        ([0, 1, 2, np.nan], r"1 labels are missing, NaN or infinite \(first 1: node 3\)"),
        (np.array([0, 1, 2, None], dtype=object), "1 labels are missing"),
        (["a", "b", "c", float("nan")], "1 labels are missing"),
        ({1: "b", 3: float("nan")}, "1 labels are missing"),
        (["a", "b", "c", NotAvailable()], "1 labels are missing"),
        (["a", "b", "c", 3], "expected text or numbers, got both .'b', 3."),
        ([0.0, 0.0, 0.0, 1e300], "1 labels are too large to be exact whole numbers"),
        ([0.0, 0.0, 0.0, 1.5], "expected classes, 1 labels have decimals"),
        (np.array([1j] * 4), "expected whole numbers or text, got complex128"),
    ],
)
def test_wrong_labels_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        labels_at(labels, np.array([1, 3]), ClassTargets().read, num_nodes=4)
