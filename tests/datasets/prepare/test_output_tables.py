"""The files depend only on the content of the tables: same content, same bytes."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest

import vesper.datasets.prepare.output_tables

if TYPE_CHECKING:
    from tests.datasets.prepare.conftest import Bank

Row = dict[str, Any]
NODES, EDGES, LABELS = "data/nodes.parquet", "data/edges.parquet", "label/labels.parquet"


def test_transfers_do_not_change_a_bit_of_features_and_nodes(bank: "Bank") -> None:
    bank.prepare_anew()
    before = bank.digest(NODES), bank.digest(LABELS)
    edges = bank.digest(EDGES)
    users = ["ann", "bob", "cat", "dan", "fay", "zoe", "yan"]
    days = ("2024-01-02", "2024-02-02")
    everyone = [
        {"time": datetime.fromisoformat(day), "src": a, "dst": b, "amount": 1.0}
        for a in users
        for b in users
        for day in days
    ]
    bank.replace("transfers", everyone)
    bank.prepare_anew()
    assert (bank.digest(NODES), bank.digest(LABELS)) == before
    assert bank.digest(EDGES) != edges


def test_the_order_of_input_rows_changes_nothing(bank: "Bank") -> None:
    many = bank.table("activity") + [
        bank.did(f"u{k % 50}", f"2024-0{1 + k % 2}-0{1 + k % 7}", ("login", "pay")[k % 2], 0.1 * k)
        for k in range(3000)
    ]
    bank.replace("activity", many)
    bank.prepare_anew()
    first = bank.digest(NODES), bank.digest(EDGES)
    order = np.random.default_rng(0).permutation(len(many))
    bank.replace("activity", [many[k] for k in order])
    bank.replace("transfers", bank.table("transfers")[::-1])
    bank.prepare_anew()
    assert (bank.digest(NODES), bank.digest(EDGES)) == first


def test_same_input_and_seed_give_same_bytes_and_the_seed_changes_only_the_split(
    bank: "Bank",
) -> None:
    labels = [{"id": f"u{k}", "label": k % 2} for k in range(40)]
    bank.replace("labels", labels)
    digests = []
    for seed in (0, 0, 1):
        bank.prepare_anew(seed=seed)
        digests.append([bank.digest(f) for f in (NODES, LABELS)])
    assert digests[0] == digests[1]
    assert digests[0][0] == digests[2][0]
    assert digests[0][1] != digests[2][1]


def test_few_nodes_at_once_give_the_same_rows(
    bank: "Bank", monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.prepare_anew()
    files = (NODES, EDGES, LABELS)
    whole = [bank.rows(file) for file in files]
    monkeypatch.setattr(vesper.datasets.prepare.output_tables, "_MOST_NODES", 2)
    bank.prepare_anew()
    assert [bank.rows(file) for file in files] == whole


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_byte(
    bank: "Bank", threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [bank.did(f"u{k % 500}", "2024-01-03", "pay", k / 7) for k in range(20_000)]
    bank.replace("activity", bank.table("activity") + many)
    bank.prepare_anew()
    first = [bank.digest(file) for file in (NODES, EDGES, LABELS)]
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda path: connect(path, config={"threads": threads}))
    bank.prepare_anew()
    assert [bank.digest(file) for file in (NODES, EDGES, LABELS)] == first
