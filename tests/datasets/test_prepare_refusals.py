"""Everything wrong with a table gets one clear error, and nothing is left at `out`."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.prepare import Prepared, prepare
from vesper.errors import InputError

Row = dict[str, Any]


def run(bank: Path, **changes: Any) -> Prepared:
    given: dict[str, Any] = {
        **{name: bank / f"{name}.parquet" for name in ("transfers", "activity", "labels")},
        "train_window": "2024-01-01..2024-01-08",
        "test_window": "2024-02-01..2024-02-08",
        "out": bank.parent / "out",
    }
    return prepare(**{**given, **changes})


def table(bank: Path, name: str) -> list[Row]:
    found: list[Row] = pq.read_table(bank / f"{name}.parquet").to_pylist()
    return found


def replace(bank: Path, name: str, rows: list[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), bank / f"{name}.parquet")


def leftovers(bank: Path) -> set[str]:
    return {path.name for path in bank.parent.iterdir()} - {"bank"}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("activity", {"type": "transfer"}, "past the privacy guarantee"),
        ("activity", {"type": "P2P"}, "past the privacy guarantee"),
        ("activity", {"time": None}, r"'time': .* found 1 row\(s\).*first 1: row 9 has nothing"),
        ("activity", {"user": None}, "column 'user'.*row 9 has nothing"),
        ("activity", {"user": ""}, "column 'user'.*row 9 has ''"),
        ("activity", {"type": None}, "column 'type'.*row 9 has nothing"),
        ("activity", {"amount": float("inf")}, "column 'amount'.*row 9 has 'inf'"),
        ("transfers", {"time": None}, "column 'time'.*row 9 has nothing"),
        ("transfers", {"dst": None}, "column 'dst'.*row 9 has nothing"),
        ("labels", {"label": -1}, "column 'label'.*row 7 has '-1'"),
        ("labels", {"label": None}, "column 'label'.*row 7 has nothing"),
        ("labels", {"label": 5}, r"1 user\(s\) with two that differ \(first 1: ann in train\)"),
    ],
)
def test_one_bad_row(bank: Path, name: str, change: Row, message: str) -> None:
    rows = table(bank, name)
    replace(bank, name, [*rows, {**rows[0], **change}])
    with pytest.raises(InputError, match=message) as error:
        run(bank)
    assert f"{name}.parquet" in str(error.value)
    assert leftovers(bank) == set()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("activity", {"counterparty": "x"}, "column.* named like a counterparty.*past the privacy"),
        ("activity", {"user": 0.5}, "column 'user'.*found DOUBLE"),
        ("activity", {"amount": True}, "column 'amount'.*found BOOLEAN"),
        ("transfers", {"src": 0.5}, "column 'src'.*found DOUBLE"),
        ("transfers", {"time": 5}, "column 'time'.*found BIGINT"),
        ("labels", {"label": 0.5}, "column 'label'.*found DOUBLE"),
    ],
)
def test_a_bad_column(bank: Path, name: str, change: Row, message: str) -> None:
    replace(bank, name, [{**row, **change} for row in table(bank, name)])
    with pytest.raises(InputError, match=message) as error:
        run(bank)
    assert f"{name}.parquet" in str(error.value)
    assert leftovers(bank) == set()


@pytest.mark.parametrize("name", ["transfers", "activity", "labels"])
@pytest.mark.parametrize(("window", "month"), [("train", 1), ("test", 2)])
def test_a_window_without_rows(bank: Path, name: str, window: str, month: int) -> None:
    replace(bank, name, [row for row in table(bank, name) if row["time"].month != month])
    with pytest.raises(InputError, match=f"{name}.*rows in the {window} window 2024-0{month}-01"):
        run(bank)
    assert leftovers(bank) == set()


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
def test_a_misnamed_column(bank: Path, name: str, column: str, misspelt: str) -> None:
    named = [
        {misspelt if key == column else key: value for key, value in row.items()}
        for row in table(bank, name)
    ]
    replace(bank, name, named)
    with pytest.raises(InputError, match=f"column '{column}'.*rename '{misspelt}'"):
        run(bank)
    assert leftovers(bank) == set()


@pytest.mark.parametrize("name", ["transfers", "activity", "labels"])
@pytest.mark.parametrize("content", [b"", b"no parquet at all"])
def test_a_file_that_is_no_table(bank: Path, name: str, content: bytes) -> None:
    (bank / f"{name}.parquet").write_bytes(content)
    with pytest.raises(InputError, match=name):
        run(bank)
    assert leftovers(bank) == set()


def test_text_that_is_not_utf8(bank: Path) -> None:
    path = bank / "labels.csv"
    path.write_bytes(b"id,label\nann,0\nj\xf6rg,1\nzo\xeb,1\n")
    with pytest.raises(
        InputError, match=r"found 2 line\(s\) that are not \(first 2: line 3, line 4"
    ):
        run(bank, labels=path)
    assert leftovers(bank) == set()


def test_ids_in_the_column_type(bank: Path) -> None:
    first = table(bank, "activity")[0]
    replace(bank, "activity", [{**first, "type": f"device {k}"} for k in range(1001)])
    with pytest.raises(InputError, match="column 'type': expected at most 1000 different values"):
        run(bank)


@pytest.mark.parametrize("told", ["risk_score", "payment"])
def test_what_the_user_says_comes_from_transfers(bank: Path, told: str) -> None:
    replace(bank, "activity", [{**row, "risk_score": 1.0} for row in table(bank, "activity")])
    with pytest.raises(InputError, match=f"first 1: {told}.*counterparties would carry edges past"):
        run(bank, transfer_columns=[told])
    assert leftovers(bank) == set()
    run(bank)  # an extra column is not read


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_window": "2024-01-01..2024-03-01"}, "not to overlap"),
        ({"train_window": "2024-01-08..2024-01-01"}, "holds no time"),
        ({"test_window": "tomorrow"}, "test window: expected FROM..TO"),
        ({"validation_share": 1.0}, "validation_share"),
        ({"validation_share": -0.1}, "validation_share"),
        ({"validation_share": 0.99}, "labels left to train on, found 3 in the train window"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings(bank: Path, changes: Row, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(bank, **changes)
    assert leftovers(bank) == set()


def test_an_existing_folder_is_left_alone(bank: Path) -> None:
    out = bank.parent / "out"
    out.mkdir()
    (out / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="expected a new or empty folder"):
        run(bank)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("failing", ["reading activity", "reading transfers", "features", "edges"])
def test_an_interruption_leaves_nothing(bank: Path, failing: str) -> None:
    def interrupt(task: str, done: int, total: int) -> None:
        if task == failing:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(bank, progress=interrupt)
    assert leftovers(bank) == set()
