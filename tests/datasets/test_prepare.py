import csv
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.prepare import Prepared, prepare

Row = dict[str, Any]
NODES, EDGES, LABELS = "data/nodes.parquet", "data/edges.parquet", "label/labels.parquet"


def run(bank: Path, suffix: str = ".parquet", **changes: Any) -> Prepared:
    """Prepare the tables of a folder into its sibling `out`, made anew."""
    shutil.rmtree(bank.parent / "out", ignore_errors=True)
    given: dict[str, Any] = {
        **{name: bank / (name + suffix) for name in ("transfers", "activity", "labels")},
        "train_window": "2024-01-01..2024-01-08",
        "test_window": "2024-02-01..2024-02-08",
        "out": bank.parent / "out",
        "validation_share": 1 / 3,
    }
    return prepare(**{**given, **changes})


def rows(bank: Path, file: str) -> list[Row]:
    found: list[Row] = pq.read_table(bank.parent / "out" / file).to_pylist()
    return found


def table(bank: Path, name: str) -> list[Row]:
    found: list[Row] = pq.read_table(bank / f"{name}.parquet").to_pylist()
    return found


def replace(bank: Path, name: str, new: list[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(new), bank / f"{name}.parquet")


def did(user: str, day: str, kind: str = "login", amount: float | None = None) -> Row:
    time = datetime.fromisoformat(f"{day}T12:00:00")
    return {"time": time, "user": user, "type": kind, "amount": amount, "channel": "web"}


def test_the_folders_hold_what_they_should_and_nothing_else(bank: Path) -> None:
    run(bank)
    out = bank.parent / "out"
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == ["data/edges.parquet", "data/nodes.parquet", "label/labels.parquet"]
    assert sorted(path.name for path in bank.parent.iterdir()) == ["bank", "out"]


def test_nodes_are_users_with_activity_or_a_label_in_a_window(bank: Path) -> None:
    run(bank)
    nodes = pq.read_table(bank.parent / "out" / "data/nodes.parquet")
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


def test_features_come_from_the_window_of_the_node(bank: Path) -> None:
    run(bank)
    node = {row["id"]: row for row in rows(bank, NODES)}
    assert node["ann@train"]["event_count"] == pytest.approx(np.log1p(2))
    assert node["ann@train"]["payment_amount_sum"] == pytest.approx(np.log1p(30))
    assert node["ann@test"]["event_count"] == pytest.approx(np.log1p(1))
    assert node["ann@test"]["payment_amount_sum"] == 0


def test_an_edge_of_each_window_is_a_record_of_its_own(bank: Path) -> None:
    run(bank)
    assert rows(bank, EDGES) == [
        {"src": "ann@test", "dst": "bob@test"},
        {"src": "ann@train", "dst": "bob@train"},
        {"src": "cat@train", "dst": "fay@train"},
    ]


def test_counts(bank: Path) -> None:
    prepared = run(bank)
    assert prepared == Prepared(
        nodes=7,
        edges=3,
        features=155,
        train=2,
        val=1,
        test=2,
        activity_outside=1,
        labels_outside=1,
        transfers_outside=1,
        transfers_to_oneself=1,
        transfers_dropped=2,
    )
    assert prepared.labelled == 5


def test_labels_and_splits(bank: Path) -> None:
    run(bank)
    known = rows(bank, LABELS)
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


def test_a_label_without_a_time_counts_for_both_windows(bank: Path) -> None:
    replace(bank, "labels", [{"id": "ann", "label": 1}, {"id": "gus", "label": 0}])
    prepared = run(bank, validation_share=0.0)
    assert [row["id"] for row in rows(bank, LABELS)] == [
        "ann@test",
        "ann@train",
        "gus@test",
        "gus@train",
    ]
    assert (prepared.train, prepared.test, prepared.val) == (2, 2, 0)


def test_the_validation_share_is_exact(bank: Path) -> None:
    replace(bank, "labels", [{"id": f"u{k}", "label": k % 2} for k in range(1000)])
    prepared = run(bank, validation_share=0.0626)
    assert (prepared.train, prepared.val, prepared.test) == (937, 63, 1000)


def test_csv_gives_the_same_as_parquet(bank: Path) -> None:
    run(bank)
    files = (NODES, EDGES, LABELS)
    expected = [rows(bank, file) for file in files]
    for name in ("transfers", "activity", "labels"):
        content = table(bank, name)
        with (bank / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(content[0]))
            writer.writeheader()
            writer.writerows(content)
    run(bank, ".csv")
    assert [rows(bank, file) for file in files] == expected


def test_integer_users_and_integer_times(bank: Path) -> None:
    hours = range(0, 400)
    replace(
        bank,
        "activity",
        [
            {"time": h * 3600, "user": h % 7, "type": "login", "amount": None, "channel": None}
            for h in hours
        ],
    )
    replace(bank, "labels", [{"id": 3, "label": 1}, {"id": 11, "label": 0}])
    replace(
        bank,
        "transfers",
        [{"time": h * 3600, "src": 10, "dst": h % 7, "amount": 1} for h in hours]
        + [{"time": h * 3600, "src": 2, "dst": h % 7, "amount": 1} for h in hours],
    )
    prepared = run(bank, train_window="0..720000", test_window="720000..1440000")
    assert prepared.nodes == 16
    assert prepared.transfers_dropped == 400  # user 10 is unknown
    assert {row["src"] for row in rows(bank, EDGES)} >= {"2@train", "2@test"}


def test_more_types_and_channels_than_slots(bank: Path) -> None:
    days = ("2024-01-02", "2024-02-02")
    many = [
        {**did("ann", days[k % 2], f"Kind {k:02d}", 1.0), "channel": f"ch-{k % 9}"}
        for k in range(30)
    ]
    replace(bank, "activity", many)
    run(bank)
    names = pq.read_schema(bank.parent / "out" / "data/nodes.parquet").names
    assert len(set(names)) == 156
    assert {"kind_00_count", "other_count", "channel_ch_0_count", "channel_other_share"} <= set(
        names
    )


def test_progress_counts_nodes_up_to_the_end(bank: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    run(bank, progress=lambda task, done, total: heard.append((task, done, total)))
    assert ("features", 7, 7) in heard
    assert ("edges", 7, 7) in heard


def test_a_window_ends_before_its_last_moment(bank: Path) -> None:
    moments = {"gil": "2024-01-07T23:59:59.999999", "hal": "2024-01-08T00:00:00"}
    late = [
        {**did(user, "2024-01-07"), "time": datetime.fromisoformat(moment)}
        for user, moment in moments.items()
    ]
    replace(bank, "activity", table(bank, "activity") + late)
    run(bank)
    ids = {row["id"] for row in rows(bank, NODES)}
    assert "gil@train" in ids
    assert "hal@train" not in ids
