"""Every kind of bad table has one clear error, and nothing is left at `out`."""

from typing import TYPE_CHECKING, Any

import pytest

from vesper.errors import InputError

if TYPE_CHECKING:
    from tests.datasets.prepare.conftest import Bank

Row = dict[str, Any]


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
        ("labels", {"label": 5}, r"1 user\(s\) with different labels \(first 1: ann in train\)"),
    ],
)
def test_one_bad_row(bank: "Bank", name: str, change: Row, message: str) -> None:
    rows = bank.table(name)
    bank.replace(name, [*rows, {**rows[0], **change}])
    with pytest.raises(InputError, match=message) as error:
        bank.prepare()
    assert f"{name}.parquet" in str(error.value)
    assert bank.leftovers() == set()


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
def test_a_bad_column(bank: "Bank", name: str, change: Row, message: str) -> None:
    bank.replace(name, [{**row, **change} for row in bank.table(name)])
    with pytest.raises(InputError, match=message) as error:
        bank.prepare()
    assert f"{name}.parquet" in str(error.value)
    assert bank.leftovers() == set()


@pytest.mark.parametrize("name", ["transfers", "activity", "labels"])
@pytest.mark.parametrize(("window", "month"), [("train", 1), ("test", 2)])
def test_a_window_without_rows(bank: "Bank", name: str, window: str, month: int) -> None:
    bank.replace(name, [row for row in bank.table(name) if row["time"].month != month])
    with pytest.raises(InputError, match=f"{name}.*rows in the {window} window 2024-0{month}-01"):
        bank.prepare()
    assert bank.leftovers() == set()


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
def test_a_misnamed_column(bank: "Bank", name: str, column: str, misspelt: str) -> None:
    named = [
        {misspelt if key == column else key: value for key, value in row.items()}
        for row in bank.table(name)
    ]
    bank.replace(name, named)
    with pytest.raises(InputError, match=f"column '{column}'.*rename '{misspelt}'"):
        bank.prepare()
    assert bank.leftovers() == set()


@pytest.mark.parametrize("name", ["transfers", "activity", "labels"])
@pytest.mark.parametrize("content", [b"", b"no parquet at all"])
def test_a_file_that_is_not_a_table(bank: "Bank", name: str, content: bytes) -> None:
    (bank.folder / f"{name}.parquet").write_bytes(content)
    with pytest.raises(InputError, match=name):
        bank.prepare()
    assert bank.leftovers() == set()


def test_text_that_is_not_utf8(bank: "Bank") -> None:
    path = bank.folder / "labels.csv"
    path.write_bytes(b"id,label\nann,0\nj\xf6rg,1\nzo\xeb,1\n")
    with pytest.raises(
        InputError, match=r"found 2 line\(s\) that are not \(first 2: line 3, line 4"
    ):
        bank.prepare(labels=path)
    assert bank.leftovers() == set()


def test_ids_in_the_column_type_are_refused(bank: "Bank") -> None:
    first = bank.table("activity")[0]
    bank.replace("activity", [{**first, "type": f"device {k}"} for k in range(1001)])
    with pytest.raises(InputError, match="column 'type': expected at most 1000 different values"):
        bank.prepare()


@pytest.mark.parametrize("declared", ["risk_score", "payment"])
def test_declared_transfer_columns_and_types_are_refused(bank: "Bank", declared: str) -> None:
    bank.replace("activity", [{**row, "risk_score": 1.0} for row in bank.table("activity")])
    with pytest.raises(InputError, match=f"first 1: {declared}.*counterparties would carry edges"):
        bank.prepare(transfer_columns=[declared])
    assert bank.leftovers() == set()
    bank.prepare()  # an extra column is ignored


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_window": "2024-01-01..2024-03-01"}, "not to overlap"),
        ({"train_window": "2024-01-08..2024-01-01"}, "which is empty"),
        ({"test_window": "tomorrow"}, "test window: expected FROM..TO"),
        ({"validation_share": 1.0}, "validation_share"),
        ({"validation_share": -0.1}, "validation_share"),
        ({"validation_share": 0.99}, "labels left to train on, found 3 in the train window"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_settings(bank: "Bank", changes: Row, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bank.prepare(**changes)
    assert bank.leftovers() == set()


def test_an_existing_folder_is_left_alone(bank: "Bank") -> None:
    out = bank.out
    out.mkdir()
    (out / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="expected a new or empty folder"):
        bank.prepare()
    assert [path.name for path in out.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("failing", ["reading activity", "reading transfers", "features", "edges"])
def test_an_interruption_leaves_nothing(bank: "Bank", failing: str) -> None:
    def interrupt(task: str, done: int, total: int, note: str = "") -> None:
        if task == failing:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bank.prepare(progress=interrupt)
    assert bank.leftovers() == set()


def test_special_characters_in_folder_names(bank: "Bank") -> None:
    out = bank.out.with_name('o\'ut [x]* \u00fc "q" md:')
    bank.prepare(out=out)
    assert sorted(path.name for path in out.iterdir()) == ["data", "label"]


def test_a_name_the_database_cannot_write_to_is_refused(bank: "Bank") -> None:
    with pytest.raises(
        InputError, match=r"out: expected a path without '\?'; choose another folder"
    ):
        bank.prepare(out=bank.out.with_name("what?"))
    assert bank.leftovers() == set()
