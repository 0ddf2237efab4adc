"""The files depend on what is in the tables, and on nothing else: same content, same bytes."""

import hashlib
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vesper.datasets.prepare_files
from vesper.datasets.prepare import Prepared, prepare

Row = dict[str, Any]
NODES, EDGES, LABELS = "data/nodes.parquet", "data/edges.parquet", "label/labels.parquet"


def run(bank: Path, **changes: Any) -> Prepared:
    """Prepare the tables of a folder into its sibling `out`, made anew."""
    shutil.rmtree(bank.parent / "out", ignore_errors=True)
    given: dict[str, Any] = {
        **{name: bank / f"{name}.parquet" for name in ("transfers", "activity", "labels")},
        "train_window": "2024-01-01..2024-01-08",
        "test_window": "2024-02-01..2024-02-08",
        "out": bank.parent / "out",
        "validation_share": 1 / 3,
    }
    return prepare(**{**given, **changes})


def rows(bank: Path, file: str) -> list[Row]:
    found: list[Row] = pq.read_table(bank.parent / "out" / file).to_pylist()
    return found


def digest(bank: Path, file: str) -> str:
    return hashlib.sha256((bank.parent / "out" / file).read_bytes()).hexdigest()


def table(bank: Path, name: str) -> list[Row]:
    found: list[Row] = pq.read_table(bank / f"{name}.parquet").to_pylist()
    return found


def replace(bank: Path, name: str, new: list[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(new), bank / f"{name}.parquet")


def did(user: str, day: str, kind: str = "login", amount: float | None = None) -> Row:
    time = datetime.fromisoformat(f"{day}T12:00:00")
    return {"time": time, "user": user, "type": kind, "amount": amount, "channel": "web"}


def test_features_and_nodes_do_not_change_by_a_bit_when_transfers_change(bank: Path) -> None:
    run(bank)
    before = digest(bank, NODES), digest(bank, LABELS)
    edges = digest(bank, EDGES)
    users = ["ann", "bob", "cat", "dan", "fay", "zoe", "yan"]
    days = ("2024-01-02", "2024-02-02")
    everyone = [
        {"time": datetime.fromisoformat(day), "src": a, "dst": b, "amount": 1.0}
        for a in users
        for b in users
        for day in days
    ]
    replace(bank, "transfers", everyone)
    run(bank)
    assert (digest(bank, NODES), digest(bank, LABELS)) == before
    assert digest(bank, EDGES) != edges


def test_the_order_of_input_rows_changes_nothing(bank: Path) -> None:
    many = table(bank, "activity") + [
        did(f"u{k % 50}", f"2024-0{1 + k % 2}-0{1 + k % 7}", ("login", "pay")[k % 2], 0.1 * k)
        for k in range(3000)
    ]
    replace(bank, "activity", many)
    run(bank)
    first = digest(bank, NODES), digest(bank, EDGES)
    order = np.random.default_rng(0).permutation(len(many))
    replace(bank, "activity", [many[k] for k in order])
    replace(bank, "transfers", table(bank, "transfers")[::-1])
    run(bank)
    assert (digest(bank, NODES), digest(bank, EDGES)) == first


def test_same_input_and_seed_same_bytes_and_the_seed_moves_only_the_split(bank: Path) -> None:
    labels = [{"id": f"u{k}", "label": k % 2} for k in range(40)]
    replace(bank, "labels", labels)
    digests = []
    for seed in (0, 0, 1):
        run(bank, seed=seed)
        digests.append([digest(bank, f) for f in (NODES, LABELS)])
    assert digests[0] == digests[1]
    assert digests[0][0] == digests[2][0]
    assert digests[0][1] != digests[2][1]


def test_few_nodes_at_once_give_the_same_rows(bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(bank)
    files = (NODES, EDGES, LABELS)
    whole = [rows(bank, file) for file in files]
    monkeypatch.setattr(vesper.datasets.prepare_files, "_MOST_NODES", 2)
    run(bank)
    assert [rows(bank, file) for file in files] == whole


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_byte(
    bank: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [did(f"u{k % 500}", "2024-01-03", "pay", k / 7) for k in range(20_000)]
    replace(bank, "activity", table(bank, "activity") + many)
    run(bank)
    first = [digest(bank, file) for file in (NODES, EDGES, LABELS)]
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda path: connect(path, config={"threads": threads}))
    run(bank)
    assert [digest(bank, file) for file in (NODES, EDGES, LABELS)] == first
