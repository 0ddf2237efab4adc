from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError, VesperError
from vesper.serving.prediction_tables import read_query_ids, refuse_output, write_predictions
from vesper.serving.predictor import Predictions

PREDICTIONS = Predictions(
    snapshot="s",
    values={"7": np.array([0.25, 0.75]), "9": np.array([1.0, 0.0])},
    cached=frozenset(),
    unknown=frozenset({"8"}),
    budget=None,
    unreachable=None,
)


@pytest.mark.parametrize("name", ["ids.parquet", "ids.csv", "ids.txt", "ids"])
def test_ids_come_from_tables_and_lines(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"id": [9, 7, 8], "more": [1, 2, 3]}), path)
    else:
        path.write_text("id\n9\n7\n8\n" if path.suffix == ".csv" else "9\n\n 7 \n8")
    assert [str(each) for each in read_query_ids(path).values.to_pylist()] == ["9", "7", "8"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("ids.csv", b"name\na\n", "expected a column 'id'"),
        ("ids.csv", b"id\na\na\n", "more than one row"),
        ("ids.csv", b"id\n", "at least one id"),
        ("ids.parquet", b"no parquet", "something else"),
        ("ids.txt", b"", "at least one id"),
        ("ids.txt", b"a\nb\na\n", r"more than one line \(first 1: a\)"),
        ("ids.txt", b"\xff\xfe", "cannot be read as text"),
    ],
)
def test_files_without_ids_are_refused(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_query_ids(tmp_path / name)


@pytest.mark.parametrize("name", ["missing.txt", "missing.csv", "missing.parquet"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=name):
        read_query_ids(tmp_path / name)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_predictions_are_written_in_the_order_of_the_ids(tmp_path: Path, name: str) -> None:
    (tmp_path / "ids.csv").write_text("id\n9\n7\n8\n")
    ids, out = read_query_ids(tmp_path / "ids.csv"), tmp_path / name
    refuse_output(out)
    write_predictions(out, ids, ["p_no", "p_yes"], PREDICTIONS)
    table = pq.read_table(out) if out.suffix == ".parquet" else pa_csv.read_csv(out)
    assert table.to_pydict() == {
        "id": [9, 7, 8],
        "p_no": [1.0, 0.25, None],
        "p_yes": [0.0, 0.75, None],
    }
    assert [path.name for path in tmp_path.glob(".*")] == []
    with pytest.raises(InputError, match="will not be overwritten"):
        refuse_output(out)


def test_paths_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        refuse_output(tmp_path / "out.json")
    with pytest.raises(InputError, match="expected a folder"):
        refuse_output(tmp_path / "none" / "out.csv")
    (tmp_path / "ids.txt").write_text("7")
    with pytest.raises(VesperError, match="cannot be written"):
        write_predictions(
            tmp_path / "none" / "out.csv", read_query_ids(tmp_path / "ids.txt"), ["p"], PREDICTIONS
        )
