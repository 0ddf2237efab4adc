"""Numbers are read as written, and every malformed file has a clear error."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from vesper.datasets.loaders.ogb_products import column_of, rows_of, width_of
from vesper.errors import InputError


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_rows_and_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv.gz", "0.5,-1\n1e-3,7\n2,3\n")
    assert width_of(path) == 2
    rows = np.concatenate(list(rows_of(path, width=2, dtype=np.float32)))
    assert rows.dtype == np.float32
    assert rows.tolist() == np.array([[0.5, -1], [1e-3, 7], [2, 3]], np.float32).tolist()
    assert column_of(write(tmp_path / "b.csv.gz", "5\n6\n")).tolist() == [5, 6]


def test_bad_cells_are_counted_and_the_first_three_named(tmp_path: Path) -> None:
    path = write(tmp_path / "edge.csv.gz", "0,1\n2,x\n3\n4,5,6\n7.5,8\n9,1\n")
    with pytest.raises(InputError) as caught:
        list(rows_of(path, width=2, dtype=np.int64))
    assert str(caught.value) == (
        f"{path}: expected 2 whole numbers per line, found 4 others "
        "(first 3: line 2: '2,x', line 3: '3', line 4: '4,5,6'); download it again"
    )


def test_empty_cells_are_not_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "feat.csv.gz", "1,2\n,3\n")
    with pytest.raises(InputError, match="expected 2 numbers per line, found 1 others"):
        list(rows_of(path, width=2, dtype=np.float32))


def test_another_width_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "edge.csv.gz", "1,2,3\n")
    with pytest.raises(InputError, match="expected 2 columns, found 3"):
        list(rows_of(path, width=2, dtype=np.int64))


def test_missing_empty_and_mislabelled_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected this file, found none"):
        width_of(tmp_path / "none.csv.gz")
    with pytest.raises(InputError, match="expected rows of numbers, found none"):
        column_of(write(tmp_path / "empty.csv.gz", ""))
    plain = tmp_path / "plain.csv.gz"
    plain.write_text("1,2\n")
    with pytest.raises(InputError, match="not a complete gzip file"):
        width_of(plain)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = "\n".join(str(number) for number in rng.integers(10**9, size=50_000))
    path = write(tmp_path / "cut.csv.gz", text)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"cut\.csv\.gz"):
        column_of(path)
