"""Only nodes with a label and a split are returned; bad splits and labels are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.loaders.neutral_folder import read_labels
from vesper.datasets.loaders.row_readers import ParquetRows
from vesper.errors import InputError

IDS = np.array([10, 11, 12, 13, 14])


def nodes(path: Path, label: Any, split: Any) -> ParquetRows:
    pq.write_table(pa.table({"label": label, "split": split}), path / "nodes.parquet")
    return ParquetRows(path / "nodes.parquet", needed=["label", "split"])


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint16()])
@pytest.mark.parametrize("is_dictionary", [True, False])
def test_labelled_nodes_of_a_split(tmp_path: Path, kind: pa.DataType, is_dictionary: bool) -> None:
    label = pa.array([0, 1, None, 3, 4], kind)
    split = pa.array(["train", "none", "val", "test", None])
    table = nodes(tmp_path, label, split.dictionary_encode() if is_dictionary else split)
    ids, labels, splits = read_labels(table, IDS)
    assert ids.tolist() == [10, 13]
    assert labels.tolist() == [0, 3]
    assert labels.dtype == np.int32
    assert splits.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("label", "split", "message"),
    [
        (
            pa.array([0] * 5),
            pa.array(["train", "dev", "test", "dev", "valid"]),
            r"column split: expected train, val, test or none, found 3 others "
            r"\(first 3: id 11: dev, id 13: dev, id 14: valid\)",
        ),
        (
            pa.array([0, -1, 0, 2**31, 0]),
            pa.array(["train"] * 5),
            r"column label: expected classes from 0 to 2147483647, found 2 others "
            r"\(first 2: id 11: -1, id 13: 2147483648\)",
        ),
        (
            pa.array([0.5] * 5),
            pa.array(["train"] * 5),
            "column label: expected whole numbers, found double",
        ),
    ],
)
def test_bad_splits_and_labels_are_refused(
    tmp_path: Path, label: Any, split: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(nodes(tmp_path, label, split), IDS)
