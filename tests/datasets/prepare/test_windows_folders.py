"""A folder per window: two graphs where there was one, every row in exactly one of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError

if TYPE_CHECKING:
    from tests.datasets.prepare.conftest import Bank

TABLES = ("data/nodes.parquet", "data/edges.parquet", "label/labels.parquet")


def test_every_row_is_in_the_folder_of_its_window(bank: "Bank") -> None:
    bank.prepare_anew()
    whole = {table: bank.rows(table) for table in TABLES}
    counts = bank.prepare_anew(separate_windows=True)
    files = sorted(str(path.relative_to(bank.out)) for path in bank.out.rglob("*.*"))
    assert files == sorted(f"{name}/{table}" for name in ("test", "train") for table in TABLES)
    for table in TABLES:
        parts = {name: bank.rows(f"{name}/{table}") for name in ("train", "test")}
        for name, rows in parts.items():
            ends = [str(row[key]) for row in rows for key in ("id", "src", "dst") if key in row]
            assert ends
            assert all(end.endswith(f"@{name}") for end in ends)
        together = sorted(map(_key, parts["train"] + parts["test"]))
        assert together == sorted(map(_key, whole[table]))
    assert (counts.nodes, counts.edges, counts.labelled) == (7, 3, 5)


def _key(row: dict[str, Any]) -> str:
    return str(sorted((key, value) for key, value in row.items() if key != "split"))


def test_the_train_window_has_its_own_test_nodes(bank: "Bank") -> None:
    bank.replace("labels", [{"id": f"u{k}", "label": k % 2} for k in range(1000)])
    counts = bank.prepare_anew(separate_windows=True, validation_share=0.1)
    splits = [row["split"] for row in bank.rows("train/label/labels.parquet")]
    assert {split: splits.count(split) for split in set(splits)} == {
        "train": 700,
        "val": 100,
        "test": 200,
    }
    assert {row["split"] for row in bank.rows("test/label/labels.parquet")} == {"test"}
    assert (counts.train, counts.val, counts.test) == (700, 100, 1200)


def test_validation_nodes_are_the_same_either_way(bank: "Bank") -> None:
    bank.replace("labels", [{"id": f"u{k}", "label": k % 2} for k in range(100)])
    bank.prepare_anew(validation_share=0.1)
    together = _validation(bank.out / "label" / "labels.parquet")
    bank.prepare_anew(separate_windows=True, validation_share=0.1)
    assert _validation(bank.out / "train" / "label" / "labels.parquet") == together


def _validation(path: Path) -> set[str]:
    return {row["id"] for row in pq.read_table(path).to_pylist() if row["split"] == "val"}


def test_something_must_be_left_to_train_on(bank: "Bank") -> None:
    with pytest.raises(InputError, match="expected labels left to train on"):
        bank.prepare_anew(separate_windows=True, validation_share=0.9)
