"""Tables are read in batches, and errors name the file, the column and the rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.loaders.row_readers import ParquetRows
from vesper.errors import InputError


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_batches_in_order(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", a=pa.array([1, 2, 3]), b=pa.array([4, 5, 6]))
    rows = ParquetRows(path, needed=["a"])
    assert rows.num_rows == 3
    assert [batch.to_pydict() for batch in rows.batches(["b"], 2)] == [{"b": [4, 5]}, {"b": [6]}]


def test_missing_columns_are_named_with_those_present(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", **{f"c{k}": pa.array([1]) for k in range(9)})
    with pytest.raises(InputError) as caught:
        ParquetRows(path, needed=["c1", "src", "dst"])
    assert str(caught.value) == (
        f"{path}: expected the columns c1, src, dst; src, dst missing, "
        "found c0, c1, c2, c3, c4, c5, c6, c7, ...; rename or add them"
    )


def test_missing_and_mislabelled_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected this file, found none"):
        ParquetRows(tmp_path / "none.parquet", needed=[])
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"text\.parquet: not a readable Parquet file"):
        ParquetRows(tmp_path / "text.parquet", needed=[])


def test_damage_inside_a_file_is_named(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", a=pa.array(range(10_000)))
    content = bytearray(path.read_bytes())
    content[4:2_000] = bytes(1_996)
    path.write_bytes(content)
    rows = ParquetRows(path, needed=["a"])
    with pytest.raises(InputError, match=r"a\.parquet: not a readable Parquet file"):
        list(rows.batches(["a"], 100))


def test_whole_numbers(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.parquet",
        small=pa.array([1, 2], pa.int8()),
        gap=pa.array([None, 2], pa.int64()),
        real=pa.array([1.0, 2.0]),
        large=pa.array([1, 2**64 - 1], pa.uint64()),
    )
    rows = ParquetRows(path, needed=[])
    (batch,) = rows.batches(["small", "gap", "real", "large"], 10)
    assert rows.whole_numbers(batch, "small", first=0).tolist() == [1, 2]
    with pytest.raises(InputError, match=r"column gap: .* found 1 empty \(first 1: row 8\)"):
        rows.whole_numbers(batch, "gap", first=7)
    with pytest.raises(InputError, match="column real: expected whole numbers, found double"):
        rows.whole_numbers(batch, "real", first=0)
    with pytest.raises(InputError, match="column large: expected numbers that fit a signed 64-bit"):
        rows.whole_numbers(batch, "large", first=0)


def test_a_column_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", age=pa.array([1]))
    path.write_bytes(path.read_bytes().replace(b"age", b"\xff\xfee"))
    with pytest.raises(InputError, match=r"a\.parquet: not a readable Parquet file"):
        ParquetRows(path, needed=["age"])
