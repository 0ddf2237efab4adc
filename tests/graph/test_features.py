"""Features are finite numbers, one row per node."""

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from vesper.graph.edges.edge_relation import edges_of

if TYPE_CHECKING:
    from tests.graph.conftest import Party


def test_lists_of_bytes_stay_bytes(party: "Party") -> None:
    x = pa.FixedSizeListArray.from_arrays(pa.array([0, 1, 1, 0, 1, 1], type=pa.uint8()), 2)
    party.write(
        nodes={"id": [2**62, -5, 17], "x": x},
        edges={"src": [17, 2**62], "dst": [-5, 17]},
        labels={"id": [-5], "label": [0], "split": ["val"]},
    )
    data = party.open_data()
    assert data.features.dtype == np.uint8
    assert data.ids.values.to_pylist() == [-5, 17, 2**62]
    assert data.features.tolist() == [[1, 0], [1, 1], [0, 1]]
    assert list(edges_of(data.graph)) == [(0, 1), (1, 2)]


def test_numbers_of_many_kinds(party: "Party") -> None:
    columns = {
        "half": pa.array([0.5, 1.0, 2.0], pa.float16()),
        "yes": [True, False, True],
        "money": [Decimal("1.25"), Decimal("2.50"), Decimal("3.00")],
        "pair": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float64(), 2)),
    }
    features = party.write(nodes={"id": [10, 20, 30], **columns}).open_data().features
    assert features.dtype == np.float32
    assert features.tolist() == [[0.5, 1, 1.25, 1, 2], [1, 0, 2.5, 3, 4], [2, 1, 3, 5, 6]]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), None])
def test_values_that_are_not_finite(party: "Party", kind: str, bad: float | None) -> None:
    party.write(kind=kind, nodes={**party.nodes, "age": [1.0, bad, bad]})
    expected = "column age: 2 values are missing, NaN or infinite (first 2: id 20, id 30)"
    assert f"nodes.{kind}, {expected}" in party.refused()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_values_that_are_too_large(party: "Party", kind: str) -> None:
    party.write(kind=kind, nodes={**party.nodes, "age": [1.0, 1e300, 1e39]})
    expected = "column age: 2 values are beyond 3.4e38 (first 2: id 20, id 30)"
    assert f"nodes.{kind}, {expected}" in party.refused()


def test_values_that_are_not_numbers(party: "Party") -> None:
    party.write(nodes={**party.nodes, "age": ["young", "old", "old"]})
    expected = "column age: expected numbers or a fixed-size list of numbers, got string"
    assert expected in party.refused()
    party.write(kind="csv", nodes={**party.nodes, "age": ["1", "old", "3"]})
    expected = "column age: 1 values are not numbers (first 1: 'old') (first 1: id 20)"
    assert expected in party.refused()


@pytest.mark.parametrize("column", ["label", "split"])
def test_columns_of_the_label_party_are_refused(party: "Party", column: str) -> None:
    party.write(nodes={**party.nodes, column: [0, 1, 0]})
    assert f"nodes.parquet, column {column}: expected features only" in party.refused()
