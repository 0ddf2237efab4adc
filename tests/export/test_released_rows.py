"""The row store refuses released files that are damaged, in one line."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.export.released_rows import feature_names, write_rows
from vesper.graph.labels import LabelHoldings, open_labels


@pytest.fixture
def labels(tmp_path: Path, write_folders: Callable[..., Path]) -> LabelHoldings:
    ids = np.arange(4)
    root = write_folders(
        tmp_path / "tables",
        nodes={"id": ids, "x": ids},
        edges={"src": ids, "dst": ids},
        labels={"id": ids, "label": [0, 1, 0, 1], "split": ["train", "train", "val", "test"]},
    )
    return open_labels(root / "label")


def test_a_column_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "released.parquet"
    pq.write_table(pa.table({"id": [1], "sum": [2.0]}), path)
    path.write_bytes(path.read_bytes().replace(b"sum", b"\xff\xfem"))
    with pytest.raises(InputError, match=r"released\.parquet: not a readable Parquet file"):
        feature_names(path)


def test_damaged_rows(tmp_path: Path, labels: LabelHoldings) -> None:
    path = tmp_path / "released.parquet"
    pq.write_table(
        pa.table({"id": pa.array(range(4)), "sum": pa.array(np.linspace(0.0, 1.0, 4))}), path
    )
    intact = path.read_bytes()
    write_rows(path, labels, tmp_path / "rows")
    for place in range(4, 60):
        path.write_bytes(intact[:place] + b"\xff" * 8 + intact[place + 8 :])
        with suppress(InputError):  # or harmless; but no other error
            write_rows(path, labels, tmp_path / "rows")
