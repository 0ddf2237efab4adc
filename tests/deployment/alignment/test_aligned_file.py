"""The stored alignment: other labels are dropped, tables that have changed are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from vesper.deployment.alignment.align import Alignment
from vesper.deployment.alignment.aligned_file import (
    aligned_path,
    drop_unaligned_labels,
    read_aligned,
    refuse_unaligned,
    write_aligned,
)
from vesper.errors import InputError, VesperError
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings

LABELS = LabelHoldings(
    path=Path("labels.parquet"),
    ids=Ids(pa.array([9, 3, 10], type=pa.int64())),
    classes=(0, 1),
    labels=np.array([1, 0, 1]),
    splits=np.array([0, 1, 2], dtype=np.int8),
)


def aligned(*ids: str, private: bool = False) -> Alignment:
    return Alignment(ids=pa.array(ids, type=pa.large_string()), proof="12ab", private=private)


def test_an_alignment_can_be_read_back(tmp_path: Path) -> None:
    assert read_aligned(tmp_path / "state") is None
    for private in (True, False):
        path = write_aligned(tmp_path / "state", aligned("10", "9", private=private))
        read = read_aligned(tmp_path / "state")
        assert read is not None
        assert (read.ids.to_pylist(), read.proof, read.private) == (["10", "9"], "12ab", private)
    assert [file.name for file in path.parent.iterdir()] == ["aligned.parquet"]


def test_labels_that_are_not_common_are_dropped() -> None:
    common = drop_unaligned_labels(LABELS, aligned("10", "9", private=True))
    assert common.ids.values.to_pylist() == [9, 10]
    assert common.labels.tolist() == [1, 1]
    assert common.splits.tolist() == [0, 2]


def test_labels_that_have_changed_are_refused() -> None:
    assert drop_unaligned_labels(LABELS, aligned("10", "3", "9")).ids.values.to_pylist() == [
        9,
        3,
        10,
    ]
    with pytest.raises(InputError, match=r"1 ids were added since the alignment \(first 1: 3\)"):
        drop_unaligned_labels(LABELS, aligned("10", "9"))
    fewer = replace(LABELS, ids=Ids(pa.array([9, 3, 11], type=pa.int64())))
    for private in (True, False):
        with pytest.raises(InputError, match=r"1 ids were removed since .*first 1: 10"):
            drop_unaligned_labels(fewer, aligned("10", "3", "9", private=private))


def test_nodes_that_have_changed_are_refused() -> None:
    refuse_unaligned(LABELS.ids, aligned("10", "9"), Path("data"))
    with pytest.raises(InputError, match=r"data: 1 ids were removed .*first 1: 11.*align again"):
        refuse_unaligned(LABELS.ids, aligned("10", "11"), Path("data"))


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    aligned_path(tmp_path).write_text("hello")
    with pytest.raises(InputError, match="expected what `vesper align` writes"):
        read_aligned(tmp_path)
    pa.parquet.write_table(pa.table({"id": ["1"]}), aligned_path(tmp_path))
    with pytest.raises(InputError, match="expected what `vesper align` writes"):
        read_aligned(tmp_path)


def test_a_state_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(VesperError, match="cannot be written"):
        write_aligned(tmp_path / "file", aligned("1"))
