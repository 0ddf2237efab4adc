import csv
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from vesper.datasets.prepare.job import PreparationSummary

if TYPE_CHECKING:
    from tests.datasets.prepare.conftest import Bank

Row = dict[str, Any]
NODES, EDGES, LABELS = "data/nodes.parquet", "data/edges.parquet", "label/labels.parquet"


def test_the_folders_contain_the_three_tables_and_nothing_else(bank: "Bank") -> None:
    bank.prepare_anew()
    out = bank.out
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == ["data/edges.parquet", "data/nodes.parquet", "label/labels.parquet"]
    assert sorted(path.name for path in bank.folder.parent.iterdir()) == ["bank", "out"]


def test_nodes_are_users_with_activity_or_a_label_in_a_window(bank: "Bank") -> None:
    bank.prepare_anew()
    nodes = pq.read_table(bank.out / "data/nodes.parquet")
    assert nodes["id"].to_pylist() == [
        "ann@test",
        "ann@train",
        "bob@test",
        "bob@train",
        "cat@train",
        "dan@test",
        "fay@train",
    ]
    assert nodes.num_columns == 156
    assert set(map(str, nodes.schema.types[1:])) == {"float"}
    features = np.stack([nodes[name].to_numpy() for name in nodes.column_names[1:]], axis=1)
    assert np.isfinite(features).all()
    assert not features[6].any()  # fay has a label and did nothing
    assert features[:6].any(axis=1).all()


def test_features_come_from_the_window_of_the_node(bank: "Bank") -> None:
    bank.prepare_anew()
    node = {row["id"]: row for row in bank.rows(NODES)}
    assert node["ann@train"]["event_count"] == pytest.approx(np.log1p(2))
    assert node["ann@train"]["payment_amount_sum"] == pytest.approx(np.log1p(30))
    assert node["ann@test"]["event_count"] == pytest.approx(np.log1p(1))
    assert node["ann@test"]["payment_amount_sum"] == 0


def test_edges_of_the_two_windows_are_separate_records(bank: "Bank") -> None:
    bank.prepare_anew()
    assert bank.rows(EDGES) == [
        {"src": "ann@test", "dst": "bob@test"},
        {"src": "ann@train", "dst": "bob@train"},
        {"src": "cat@train", "dst": "fay@train"},
    ]


def test_counts(bank: "Bank") -> None:
    prepared = bank.prepare_anew()
    assert prepared == PreparationSummary(
        nodes=7,
        edges=3,
        features=155,
        train=2,
        val=1,
        test=2,
        activity_outside=1,
        labels_outside=1,
        transfers_outside=1,
        self_transfers=1,
        transfers_dropped=2,
    )
    assert prepared.labelled == 5


def test_labels_and_splits(bank: "Bank") -> None:
    bank.prepare_anew()
    known = bank.rows(LABELS)
    assert [(row["id"], row["label"]) for row in known] == [
        ("ann@test", 1),
        ("ann@train", 0),
        ("bob@train", 1),
        ("dan@test", 0),
        ("fay@train", 0),
    ]
    split = {row["id"]: row["split"] for row in known}
    assert split["ann@test"] == split["dan@test"] == "test"
    assert sorted(split[u] for u in ("ann@train", "bob@train", "fay@train")) == [
        "train",
        "train",
        "val",
    ]


def test_a_label_without_a_time_counts_for_both_windows(bank: "Bank") -> None:
    bank.replace("labels", [{"id": "ann", "label": 1}, {"id": "gus", "label": 0}])
    prepared = bank.prepare_anew(validation_share=0.0)
    assert [row["id"] for row in bank.rows(LABELS)] == [
        "ann@test",
        "ann@train",
        "gus@test",
        "gus@train",
    ]
    assert (prepared.train, prepared.test, prepared.val) == (2, 2, 0)


def test_the_validation_share_is_exact(bank: "Bank") -> None:
    bank.replace("labels", [{"id": f"u{k}", "label": k % 2} for k in range(1000)])
    prepared = bank.prepare_anew(validation_share=0.0626)
    assert (prepared.train, prepared.val, prepared.test) == (937, 63, 1000)


def test_csv_and_parquet_give_the_same_result(bank: "Bank") -> None:
    bank.prepare_anew()
    files = (NODES, EDGES, LABELS)
    expected = [bank.rows(file) for file in files]
    for name in ("transfers", "activity", "labels"):
        content = bank.table(name)
        with (bank.folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(content[0]))
            writer.writeheader()
            writer.writerows(content)
    bank.prepare_anew(".csv")
    assert [bank.rows(file) for file in files] == expected


def test_integer_users_and_integer_times(bank: "Bank") -> None:
    hours = range(0, 400)
    bank.replace(
        "activity",
        [
            {"time": h * 3600, "user": h % 7, "type": "login", "amount": None, "channel": None}
            for h in hours
        ],
    )
    bank.replace("labels", [{"id": 3, "label": 1}, {"id": 11, "label": 0}])
    bank.replace(
        "transfers",
        [{"time": h * 3600, "src": 10, "dst": h % 7, "amount": 1} for h in hours]
        + [{"time": h * 3600, "src": 2, "dst": h % 7, "amount": 1} for h in hours],
    )
    prepared = bank.prepare_anew(train_window="0..720000", test_window="720000..1440000")
    assert prepared.nodes == 16
    assert prepared.transfers_dropped == 400  # user 10 is unknown
    assert {row["src"] for row in bank.rows(EDGES)} >= {"2@train", "2@test"}


def test_more_types_and_channels_than_slots(bank: "Bank") -> None:
    days = ("2024-01-02", "2024-02-02")
    many = [
        {**bank.did("ann", days[k % 2], f"Kind {k:02d}", 1.0), "channel": f"ch-{k % 9}"}
        for k in range(30)
    ]
    bank.replace("activity", many)
    bank.prepare_anew()
    names = pq.read_schema(bank.out / "data/nodes.parquet").names
    assert len(set(names)) == 156
    assert {"kind_00_count", "other_count", "channel_ch_0_count", "channel_other_share"} <= set(
        names
    )


def test_progress_counts_nodes_up_to_the_end(bank: "Bank") -> None:
    reports: list[tuple[str, int, int]] = []
    bank.prepare_anew(
        progress=lambda task, done, total, note="": reports.append((task, done, total))
    )
    assert ("features", 7, 7) in reports
    assert ("edges", 7, 7) in reports


def test_the_end_of_a_window_is_outside(bank: "Bank") -> None:
    moments = {"gil": "2024-01-07T23:59:59.999999", "hal": "2024-01-08T00:00:00"}
    late = [
        {**bank.did(user, "2024-01-07"), "time": datetime.fromisoformat(moment)}
        for user, moment in moments.items()
    ]
    bank.replace("activity", bank.table("activity") + late)
    bank.prepare_anew()
    ids = {row["id"] for row in bank.rows(NODES)}
    assert "gil@train" in ids
    assert "hal@train" not in ids
