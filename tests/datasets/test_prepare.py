import csv
import hashlib
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vesper.datasets.prepare_files
from vesper.datasets.prepare import Prepared, prepare
from vesper.errors import InputError

Row = dict[str, Any]
TRAIN = "2024-01-01..2024-01-08"
TEST = "2024-02-01..2024-02-08"


def on(day: str, hour: int = 12) -> datetime:
    return datetime.fromisoformat(f"{day}T{hour:02d}:00:00")


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


def write(path: Path, rows: list[Row]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return path


class Case:
    """Three tables in a folder, any of which a test may replace before it runs."""

    def __init__(self, folder: Path, suffix: str = ".parquet") -> None:
        self.folder = folder
        self.out = folder / "out"
        self.paths = {
            name: write(folder / (name + suffix), rows)
            for name, rows in (
                ("transfers", TRANSFERS),
                ("activity", ACTIVITY),
                ("labels", LABELS),
            )
        }

    def replace(self, name: str, rows: list[Row]) -> None:
        write(self.paths[name], rows)

    def run(self, **changes: Any) -> Prepared:
        shutil.rmtree(self.out, ignore_errors=True)
        given: dict[str, Any] = {
            "train_window": TRAIN,
            "test_window": TEST,
            "out": self.out,
            "validation_share": 1 / 3,
        }
        return prepare(**{**self.paths, **given, **changes})

    def rows(self, file: str) -> list[Row]:
        rows: list[Row] = pq.read_table(self.out / file).to_pylist()
        return rows

    def digest(self, file: str) -> str:
        return hashlib.sha256((self.out / file).read_bytes()).hexdigest()

    def leftovers(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()} - {p.name for p in self.paths.values()}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_the_folders_hold_what_they_should_and_nothing_else(case: Case) -> None:
    case.run()
    files = sorted(str(p.relative_to(case.out)) for p in case.out.rglob("*") if p.is_file())
    assert files == ["data/edges.parquet", "data/nodes.parquet", "label/labels.parquet"]
    assert case.leftovers() == {"out"}


def test_nodes_are_users_with_activity_or_a_label_in_a_window(case: Case) -> None:
    case.run()
    nodes = pq.read_table(case.out / "data/nodes.parquet")
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


def test_features_come_from_the_window_of_the_node(case: Case) -> None:
    case.run()
    rows = {row["id"]: row for row in case.rows("data/nodes.parquet")}
    assert rows["ann@train"]["event_count"] == pytest.approx(np.log1p(2))
    assert rows["ann@train"]["payment_amount_sum"] == pytest.approx(np.log1p(30))
    assert rows["ann@test"]["event_count"] == pytest.approx(np.log1p(1))
    assert rows["ann@test"]["payment_amount_sum"] == 0


def test_an_edge_of_each_window_is_a_record_of_its_own(case: Case) -> None:
    case.run()
    assert case.rows("data/edges.parquet") == [
        {"src": "ann@test", "dst": "bob@test"},
        {"src": "ann@train", "dst": "bob@train"},
        {"src": "cat@train", "dst": "fay@train"},
    ]


def test_counts(case: Case) -> None:
    prepared = case.run()
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


def test_labels_and_splits(case: Case) -> None:
    case.run()
    rows = case.rows("label/labels.parquet")
    assert [(row["id"], row["label"]) for row in rows] == [
        ("ann@test", 1),
        ("ann@train", 0),
        ("bob@train", 1),
        ("dan@test", 0),
        ("fay@train", 0),
    ]
    split = {row["id"]: row["split"] for row in rows}
    assert split["ann@test"] == split["dan@test"] == "test"
    assert sorted(split[u] for u in ("ann@train", "bob@train", "fay@train")) == [
        "train",
        "train",
        "val",
    ]


def test_a_label_without_a_time_counts_for_both_windows(case: Case) -> None:
    case.replace("labels", [{"id": "ann", "label": 1}, {"id": "gus", "label": 0}])
    prepared = case.run(validation_share=0.0)
    assert [row["id"] for row in case.rows("label/labels.parquet")] == [
        "ann@test",
        "ann@train",
        "gus@test",
        "gus@train",
    ]
    assert (prepared.train, prepared.test, prepared.val) == (2, 2, 0)


def test_features_and_nodes_do_not_change_by_a_bit_when_transfers_change(case: Case) -> None:
    case.run()
    before = case.digest("data/nodes.parquet"), case.digest("label/labels.parquet")
    edges = case.digest("data/edges.parquet")
    users = ["ann", "bob", "cat", "dan", "fay", "zoe", "yan"]
    days = ("2024-01-02", "2024-02-02")
    case.replace("transfers", [sent(a, b, day) for a in users for b in users for day in days])
    case.run()
    assert (case.digest("data/nodes.parquet"), case.digest("label/labels.parquet")) == before
    assert case.digest("data/edges.parquet") != edges


def test_the_order_of_input_rows_changes_nothing(case: Case) -> None:
    many = [
        did(f"u{k % 50}", f"2024-0{1 + k % 2}-0{1 + k % 7}", ("login", "pay")[k % 2], 0.1 * k)
        for k in range(3000)
    ]
    case.replace("activity", ACTIVITY + many)
    case.run()
    first = {name: case.digest(f"data/{name}.parquet") for name in ("nodes", "edges")}
    rng = np.random.default_rng(0)
    shuffled = [(ACTIVITY + many)[k] for k in rng.permutation(len(ACTIVITY + many))]
    case.replace("activity", shuffled)
    case.replace("transfers", TRANSFERS[::-1])
    case.run()
    assert {name: case.digest(f"data/{name}.parquet") for name in ("nodes", "edges")} == first


def test_same_input_and_seed_same_bytes_and_the_seed_moves_only_the_split(case: Case) -> None:
    labels = [{"id": f"u{k}", "label": k % 2} for k in range(40)]
    case.replace("labels", labels)
    digests = []
    for seed in (0, 0, 1):
        case.run(seed=seed)
        digests.append([case.digest(f) for f in ("data/nodes.parquet", "label/labels.parquet")])
    assert digests[0] == digests[1]
    assert digests[0][0] == digests[2][0]
    assert digests[0][1] != digests[2][1]


def test_the_validation_share_is_exact(case: Case) -> None:
    case.replace("labels", [{"id": f"u{k}", "label": k % 2} for k in range(1000)])
    prepared = case.run(validation_share=0.0626)
    assert (prepared.train, prepared.val, prepared.test) == (937, 63, 1000)


def test_few_nodes_at_once_give_the_same_rows(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.run()
    files = ("data/nodes.parquet", "data/edges.parquet", "label/labels.parquet")
    whole = [case.rows(file) for file in files]
    monkeypatch.setattr(vesper.datasets.prepare_files, "_MOST_NODES", 2)
    case.run()
    assert [case.rows(file) for file in files] == whole


def test_csv_gives_the_same_as_parquet(case: Case, tmp_path: Path) -> None:
    case.run()
    (tmp_path / "csv").mkdir()
    other = Case(tmp_path / "csv", ".csv")
    other.run()
    for file in ("data/nodes.parquet", "data/edges.parquet", "label/labels.parquet"):
        assert other.rows(file) == case.rows(file)


def test_integer_users_and_integer_times(case: Case) -> None:
    hours = range(0, 400)
    case.replace(
        "activity",
        [
            {"time": h * 3600, "user": h % 7, "type": "login", "amount": None, "channel": None}
            for h in hours
        ],
    )
    case.replace("labels", [{"id": 3, "label": 1}, {"id": 11, "label": 0}])
    case.replace(
        "transfers",
        [{"time": h * 3600, "src": 10, "dst": h % 7, "amount": 1} for h in hours]
        + [{"time": h * 3600, "src": 2, "dst": h % 7, "amount": 1} for h in hours],
    )
    prepared = case.run(train_window="0..720000", test_window="720000..1440000")
    assert prepared.nodes == 16
    assert prepared.transfers_dropped == 400  # user 10 is unknown
    assert {row["src"] for row in case.rows("data/edges.parquet")} >= {"2@train", "2@test"}


def test_more_types_and_channels_than_slots(case: Case) -> None:
    rows = []
    for k in range(30):
        row = did("ann", ("2024-01-02", "2024-02-02")[k % 2], f"Kind {k:02d}", 1.0)
        rows.append({**row, "channel": f"ch-{k % 9}"})
    case.replace("activity", rows)
    case.run()
    names = pq.read_schema(case.out / "data/nodes.parquet").names
    assert len(set(names)) == 156
    assert {"kind_00_count", "other_count", "channel_ch_0_count", "channel_other_share"} <= set(
        names
    )


def test_an_existing_folder_is_left_alone(case: Case) -> None:
    case.out.mkdir()
    (case.out / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="expected a new or empty folder"):
        prepare(**case.paths, train_window=TRAIN, test_window=TEST, out=case.out)
    assert [path.name for path in case.out.iterdir()] == ["mine.txt"]


def test_progress_counts_nodes_up_to_the_end(case: Case) -> None:
    heard: list[tuple[str, int, int]] = []
    case.run(progress=lambda task, done, total: heard.append((task, done, total)))
    assert ("features", 7, 7) in heard
    assert ("edges", 7, 7) in heard


BAD: list[tuple[str, list[Row], str]] = [
    ("activity", [{**row, "counterparty": "x"} for row in ACTIVITY], "past the privacy guarantee"),
    ("activity", [*ACTIVITY, did("ann", "2024-01-02", "transfer")], "past the privacy guarantee"),
    ("activity", [*ACTIVITY, did("ann", "2024-01-02", "P2P")], "past the privacy guarantee"),
    ("activity", [{**row, "time": None} for row in ACTIVITY[:1]] + ACTIVITY, "row 1 has nothing"),
    ("activity", [*ACTIVITY, did(None, "2024-01-02")], "column 'user'.*row 9 has nothing"),
    ("activity", [*ACTIVITY, did("", "2024-01-02")], "column 'user'.*row 9 has ''"),
    ("activity", [*ACTIVITY, did("ann", "2024-01-02", "x", 1e99)], "column 'amount'.*row 9"),
    ("activity", ACTIVITY[:4], "activity.*rows in the test window 2024-02-01..2024-02-08"),
    ("activity", ACTIVITY[4:], "activity.*rows in the train window"),
    ("transfers", TRANSFERS[:3], "transfers.*rows in the test window"),
    ("labels", LABELS[:3], "labels.*rows in the test window"),
    ("labels", [*LABELS, {**LABELS[0], "label": 1}], r"1 user\(s\) with two.*ann in train"),
    ("labels", [*LABELS, {**LABELS[0], "label": -1}], "column 'label'.*row 7 has '-1'"),
    ("labels", [{**row, "label": 0.5} for row in LABELS], "column 'label'.*found DOUBLE"),
    ("transfers", [{**row, "src": 0.5} for row in TRANSFERS], "column 'src'.*found DOUBLE"),
    ("transfers", [{**row, "time": 5} for row in TRANSFERS], "column 'time'.*found BIGINT"),
    (
        "activity",
        [did("a", d, f"k{k}") for k in range(1001) for d in ("2024-01-02", "2024-02-02")],
        "column 'type': expected at most 1000",
    ),
]


@pytest.mark.parametrize(("name", "rows", "message"), BAD)
def test_bad_tables_are_refused_and_nothing_is_written(
    case: Case, name: str, rows: list[Row], message: str
) -> None:
    case.replace(name, rows)
    with pytest.raises(InputError, match=message) as error:
        case.run()
    assert str(case.paths[name]) in str(error.value)
    assert case.leftovers() == set()


@pytest.mark.parametrize(
    ("name", "column", "misspelt"),
    [
        ("activity", "channel", "chanel"),
        ("activity", "user", "usr"),
        ("transfers", "dst", "dest"),
        ("transfers", "time", "Time"),
        ("labels", "label", "labels"),
        ("labels", "id", "uid"),
    ],
)
def test_a_misnamed_column_is_refused_with_the_nearest_name(
    case: Case, name: str, column: str, misspelt: str
) -> None:
    rows = pq.read_table(case.paths[name]).to_pylist()
    case.replace(name, [{misspelt if k == column else k: v for k, v in r.items()} for r in rows])
    with pytest.raises(InputError, match=f"column '{column}'.*rename '{misspelt}'"):
        case.run()
    assert case.leftovers() == set()


@pytest.mark.parametrize("name", ["transfers", "activity", "labels"])
@pytest.mark.parametrize("content", [b"", b"no parquet at all"])
def test_a_file_that_is_no_table(case: Case, name: str, content: bytes) -> None:
    case.paths[name].write_bytes(content)
    with pytest.raises(InputError, match=name):
        case.run()
    assert case.leftovers() == set()


@pytest.mark.parametrize("told", ["risk_score", "payment"])
def test_what_the_user_says_comes_from_transfers_is_refused(case: Case, told: str) -> None:
    case.replace("activity", [{**row, "risk_score": 1.0} for row in ACTIVITY])
    case.run()
    with pytest.raises(InputError, match="counterparties would carry edges past"):
        case.run(transfer_columns=[told])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_window": "2024-01-01..2024-03-01"}, "not to overlap"),
        ({"train_window": "2024-01-08..2024-01-01"}, "holds no time"),
        ({"test_window": "tomorrow"}, "test window: expected FROM..TO"),
        ({"validation_share": 1.0}, "validation_share"),
        ({"validation_share": -0.1}, "validation_share"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings_are_refused(case: Case, changes: Row, message: str) -> None:
    with pytest.raises(InputError, match=message):
        case.run(**changes)
    assert case.leftovers() == set()


@pytest.mark.parametrize("task", ["reading activity", "reading transfers", "features", "edges"])
def test_whatever_goes_wrong_nothing_is_left(case: Case, task: str) -> None:
    def fail(name: str, done: int, total: int) -> None:
        if name == task:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        case.run(progress=fail)
    assert case.leftovers() == set()


def test_a_late_moment_of_the_last_day_is_inside(case: Case) -> None:
    late = on("2024-01-07", 23) + timedelta(minutes=59, seconds=59, microseconds=999_999)
    case.replace("activity", [*ACTIVITY, {**did("gil", "2024-01-07"), "time": late}])
    case.run()
    assert "gil@train" in {row["id"] for row in case.rows("data/nodes.parquet")}
