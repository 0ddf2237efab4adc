"""Three small tables of a payment platform, for the tests of `prepare`."""

import hashlib
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.prepare.job import PreparationSummary, prepare

Row = dict[str, Any]


def on(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T12:00:00")


def did(user: object, day: str, kind: str = "login", amount: float | None = None) -> Row:
    return {"time": on(day), "user": user, "type": kind, "amount": amount, "channel": "web"}


def sent(src: object, dst: object, day: str) -> Row:
    return {"time": on(day), "src": src, "dst": dst, "amount": 5.0}


ACTIVITY = [
    did("ann", "2024-01-01"),
    did("ann", "2024-01-02", "payment", 30.0),
    did("bob", "2024-01-07"),
    did("cat", "2024-01-03"),
    did("ann", "2024-02-03"),
    did("bob", "2024-02-01"),
    did("dan", "2024-02-07", "payment", 8.0),
    did("eve", "2024-01-20"),  # between the windows
]
LABELS: list[Row] = [
    {"id": "ann", "label": 0, "time": on("2024-01-05")},
    {"id": "bob", "label": 1, "time": on("2024-01-05")},
    {"id": "fay", "label": 0, "time": on("2024-01-06")},  # a label, no activity
    {"id": "ann", "label": 1, "time": on("2024-02-05")},
    {"id": "dan", "label": 0, "time": on("2024-02-05")},
    {"id": "eve", "label": 1, "time": on("2024-03-01")},
]
TRANSFERS = [
    sent("ann", "bob", "2024-01-01"),
    sent("bob", "ann", "2024-01-02"),
    sent("fay", "cat", "2024-01-07"),
    sent("ann", "bob", "2024-02-01"),
    sent("ann", "ann", "2024-02-01"),
    sent("ann", "dan", "2024-01-01"),  # dan is not a node of the train window
    sent("dan", "zoe", "2024-02-02"),  # zoe is not a node of any window
    sent("ann", "cat", "2024-01-08"),  # the first moment outside
]


class Bank:
    """A folder with `activity`, `labels` and `transfers`, and the output of `prepare` at `out`.

    Windows: 2024-01-01..2024-01-08 for train, 2024-02-01..2024-02-08 for test.
    """

    def __init__(self, root: Path) -> None:
        self.folder, self.out = root / "bank", root / "out"
        self.folder.mkdir()
        for name, rows in (("activity", ACTIVITY), ("labels", LABELS), ("transfers", TRANSFERS)):
            self.replace(name, rows)

    did = staticmethod(did)

    def table(self, name: str) -> list[Row]:
        rows: list[Row] = pq.read_table(self.folder / f"{name}.parquet").to_pylist()
        return rows

    def replace(self, name: str, rows: list[Row]) -> None:
        pq.write_table(pa.Table.from_pylist(rows), self.folder / f"{name}.parquet")

    def prepare(self, suffix: str = ".parquet", **changes: Any) -> PreparationSummary:
        given: dict[str, Any] = {
            **{name: self.folder / (name + suffix) for name in ("transfers", "activity", "labels")},
            "train_window": "2024-01-01..2024-01-08",
            "test_window": "2024-02-01..2024-02-08",
            "out": self.out,
            "validation_share": 1 / 3,
        }
        return prepare(**{**given, **changes})

    def prepare_anew(self, suffix: str = ".parquet", **changes: Any) -> PreparationSummary:
        shutil.rmtree(self.out, ignore_errors=True)
        return self.prepare(suffix, **changes)

    def rows(self, file: str) -> list[Row]:
        rows: list[Row] = pq.read_table(self.out / file).to_pylist()
        return rows

    def digest(self, file: str) -> str:
        return hashlib.sha256((self.out / file).read_bytes()).hexdigest()

    def leftovers(self) -> set[str]:
        return {path.name for path in self.folder.parent.iterdir()} - {"bank"}


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)
