"""Data frames of pandas, polars and Arrow: columns, indexes and ids."""

from typing import Any

import networkx
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

from vesper.errors import InputError
from vesper.graph.frames import (
    columns_of,
    distinct_ids,
    index_of,
    is_frame,
    matrix_of,
    pairs_of,
    without_column,
)

VALUES = {"id": ["a", "b", "c"], "age": [1, 2, 3], "score": [0.5, 1.5, 2.5]}
FRAMES = [pandas.DataFrame(VALUES), polars.DataFrame(VALUES), pa.table(VALUES)]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "arrow"])
def test_columns_become_a_matrix(frame: Any) -> None:
    assert is_frame(frame)
    assert list(columns_of(frame)) == ["id", "age", "score"]
    assert distinct_ids(np.asarray(columns_of(frame)["id"]), "ids", num_nodes=3).take([2]) == ["c"]
    numbers = without_column(frame, "id")
    assert matrix_of(numbers, "features").tolist() == [[1, 0.5], [2, 1.5], [3, 2.5]]
    with pytest.raises(InputError, match=r"column 'id': expected numbers, got text; .* ids='id'"):
        matrix_of(frame, "features")


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pa.table])
def test_pairs_of_an_edge_table(make: Any) -> None:
    ends = {"x": ["a", "b"], "y": ["b", "c"]}
    assert pairs_of(make(ends), "graph").tolist() == [["a", "b"], ["b", "c"]]
    named = {"amount": [1.0, 2.0], "target": [1, 2], "source": [0, 1]}
    assert pairs_of(make(named), "graph").tolist() == [[0, 1], [1, 2]]
    with pytest.raises(InputError, match="expected an edge table with columns src and dst"):
        pairs_of(make({**ends, "z": [1, 2]}), "graph")


def test_an_index_that_only_counts_rows_names_none() -> None:
    frame = pandas.DataFrame({"a": [1, 2, 3]})
    assert index_of(frame) is None
    assert index_of(frame["a"]) is None
    for other in ([1, 2, 3], np.ones(2), None, networkx.path_graph(3), FRAMES[1], FRAMES[2]):
        assert index_of(other) is None
    shuffled = index_of(frame.iloc[[2, 0, 1]])
    assert shuffled is not None
    assert shuffled.tolist() == [2, 0, 1]
    with pytest.raises(InputError, match="expected one level, got 2"):
        index_of(frame.set_index([["x"] * 3, [1, 2, 3]]))


def test_nullable_columns_are_numbers() -> None:
    frame = pandas.DataFrame({"a": pandas.array([1, 2, None], dtype="Int64")})
    assert np.isnan(matrix_of(frame, "features")[2, 0])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a"], r"1 ids name more than one node \(first 1: a\)"),
        (["a", "b"], "expected one id per row of the features, which are 3, got 2"),
        (np.array(["a", 1, "b"], dtype=object), "whole numbers or text as ids, one kind"),
        (np.array(["a", None, "b"], dtype=object), "none missing"),
        ([0.5, 1.0, 2.0], "expected whole numbers or text as ids"),
        (np.ones((3, 2)), r"expected one id per node, got shape \(3, 2\)"),
    ],
)
def test_unusable_ids_are_refused(ids: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        distinct_ids(ids, "ids", num_nodes=3)


def test_columns_of_one_name_are_refused() -> None:
    frame = pandas.DataFrame(np.ones((2, 2)), columns=["a", "a"])
    with pytest.raises(InputError, match="expected columns with different names"):
        columns_of(frame)
