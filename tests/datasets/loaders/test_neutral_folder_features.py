"""Only `f0..fk` or `x` are features, in order, finite, as float32 or bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.loaders.neutral_folder import FeatureColumns
from vesper.datasets.loaders.row_readers import ParquetRows
from vesper.errors import InputError


def nodes(path: Path, **columns: Any) -> ParquetRows:
    pq.write_table(pa.table(columns), path / "nodes.parquet")
    return ParquetRows(path / "nodes.parquet", needed=[])


def test_numbered_columns_are_ordered_by_number(tmp_path: Path) -> None:
    one = pa.array([1])
    features = FeatureColumns(nodes(tmp_path, f10=one, f2=one, fun=one, school=one))
    assert features.names == ["f2", "f10"]
    assert [field.type for field in features.fields] == [pa.float32(), pa.float32()]


@pytest.mark.parametrize(
    ("given", "stored"),
    [(pa.uint8(), pa.uint8()), (pa.float32(), pa.float32()), (pa.float64(), pa.float32())],
)
def test_lists_are_stored_as_bytes_or_float32(
    tmp_path: Path, given: pa.DataType, stored: pa.DataType
) -> None:
    x = pa.FixedSizeListArray.from_arrays(pa.array([0, 1, 1, 0]).cast(given), 2)
    rows = nodes(tmp_path, x=x)
    features = FeatureColumns(rows)
    (batch,) = rows.batches(["x"], 10)
    (array,) = features.arrays(batch, np.arange(2))
    assert array.type == pa.list_(stored, 2)
    assert array.to_pylist() == [[0, 1], [1, 0]]
    features.refuse()


def test_rows_that_are_not_finite_are_counted_over_batches(tmp_path: Path) -> None:
    rows = nodes(tmp_path, f0=pa.array([1e300, None, 1.0, float("nan"), float("-inf")]))
    features = FeatureColumns(rows)
    for first, batch in zip((0, 2, 4), rows.batches(["f0"], 2), strict=True):
        features.arrays(batch, np.arange(10 + first, 10 + first + len(batch)))
    with pytest.raises(InputError) as caught:
        features.refuse()
    assert str(caught.value) == (
        f"{rows.path}, column f0: expected finite numbers in every row, found 4 others "
        "(first 3: id 10, id 11, id 13); fill or drop these rows"
    )


def test_nulls_inside_and_instead_of_lists_are_bad(tmp_path: Path) -> None:
    values = [[1.0, 2.0], None, [3.0, None], [4.0, float("inf")], [5.0, 6.0]]
    rows = nodes(tmp_path, x=pa.array(values, pa.list_(pa.float32(), 2)))
    features = FeatureColumns(rows)
    (batch,) = rows.batches(["x"], 10)
    features.arrays(batch, np.arange(5))
    with pytest.raises(InputError, match=r"found 3 others \(first 3: id 1, id 2, id 3\)"):
        features.refuse()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"f0": pa.array(["a"])}, "column f0: expected numbers, found string"),
        ({"x": pa.array([[1.0]])}, "column x: expected a fixed-size list of float32 or uint8"),
        (
            {"x": pa.array([["a"]], pa.list_(pa.string(), 1))},
            "column x: expected a fixed-size list of float32 or uint8",
        ),
        ({"y": pa.array([1])}, "features either in f0..fk or in x, found neither"),
        ({"x": pa.array([1]), "f0": pa.array([1])}, "in f0..fk or in x, found both"),
    ],
)
def test_columns_that_cannot_be_features_are_refused(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        FeatureColumns(nodes(tmp_path, **columns))
