"""Three small tables of a payment platform, for the tests of `prepare`."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    sent("ann", "dan", "2024-01-01"),  # dan is no node of the train window
    sent("dan", "zoe", "2024-02-02"),  # zoe is no node at all
    sent("ann", "cat", "2024-01-08"),  # the first moment outside
]


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """A folder with `activity`, `labels` and `transfers`, all Parquet.

    Windows: 2024-01-01..2024-01-08 for train, 2024-02-01..2024-02-08 for test.
    """
    folder = tmp_path / "bank"
    folder.mkdir()
    for name, rows in (("activity", ACTIVITY), ("labels", LABELS), ("transfers", TRANSFERS)):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    return folder
