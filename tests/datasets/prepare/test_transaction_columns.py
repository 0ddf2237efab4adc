from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.prepare.transaction_columns import (
    Column,
    amount_column,
    count_rows,
    label_column,
    text_column,
    time_column,
)
from vesper.datasets.prepare.transaction_table import TransactionTable, open_table
from vesper.datasets.prepare.windows import parse_window
from vesper.errors import InputError

DATES = parse_window("train", "2024-01-01..2024-02-01")
INTEGERS = parse_window("train", "0..100")
NOON = 1_704_110_400  # 2024-01-01T12:00:00Z


class Reader:
    """Write one column to a file and read it back through a `Column`."""

    def __init__(self, folder: Path) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.folder = folder

    def parquet(self, name: str, values: list[object], kind: pa.DataType) -> TransactionTable:
        path = self.folder / "t.parquet"
        pq.write_table(pa.Table.from_arrays([pa.array(values, type=kind)], names=[name]), path)
        return open_table(self.connection, path)

    def csv(self, name: str, values: list[str]) -> TransactionTable:
        path = self.folder / "t.csv"
        path.write_text("\n".join([f"{name},x", *(f"{value},0" for value in values)]) + "\n")
        return open_table(self.connection, path)

    def values(self, table: TransactionTable, column: Column) -> list[object]:
        assert count_rows(self.connection, table, [column]) > 0
        rows = self.connection.execute(f"SELECT {column.value} FROM {table.sql}").fetchall()
        return [row[0] for row in rows]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")],
    ids=str,
)
def test_timestamps_of_every_unit(reader: Reader, kind: pa.DataType) -> None:
    table = reader.parquet("time", [datetime(2024, 1, 1, 12)], kind)
    assert reader.values(table, time_column(table, DATES)) == [NOON]


def test_timestamps_with_a_zone_and_dates(reader: Reader) -> None:
    berlin = timezone(timedelta(hours=1))
    moment = datetime(2024, 1, 1, 13, tzinfo=berlin)
    table = reader.parquet("time", [moment], pa.timestamp("us", tz="UTC"))
    assert reader.values(table, time_column(table, DATES)) == [NOON]
    table = reader.parquet("time", [date(2024, 1, 1)], pa.date32())
    assert reader.values(table, time_column(table, DATES)) == [NOON - 12 * 3600]


def test_fractions_of_a_second_are_rounded_down(reader: Reader) -> None:
    moments: list[object] = [
        datetime.fromtimestamp(-0.25, tz=UTC).replace(tzinfo=None),
        datetime(2024, 1, 1, 12, 0, 0, 999_999),
    ]
    table = reader.parquet("time", moments, pa.timestamp("us"))
    assert reader.values(table, time_column(table, DATES)) == [-1, NOON]


def test_text_times(reader: Reader) -> None:
    texts = ["2024-01-01T12:00:00", "2024-01-01 13:00:00+01:00", "2024-01-01T12:00:00Z"]
    table = reader.csv("time", texts)
    assert reader.values(table, time_column(table, DATES)) == [NOON] * 3
    table = reader.csv("time", ["5", "-7", "+3"])
    assert reader.values(table, time_column(table, INTEGERS)) == [5, -7, 3]


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint8(), pa.uint64()], ids=str)
def test_integer_times(reader: Reader, kind: pa.DataType) -> None:
    table = reader.parquet("time", [7], kind)
    assert reader.values(table, time_column(table, INTEGERS)) == [7]


def test_windows_and_column_must_be_of_the_same_kind(reader: Reader) -> None:
    table = reader.parquet("time", [7], pa.int64())
    with pytest.raises(InputError, match=r"column 'time': expected dates.*found BIGINT"):
        time_column(table, DATES)
    table = reader.parquet("time", [date(2024, 1, 1)], pa.date32())
    with pytest.raises(InputError, match=r"column 'time': expected integers.*found DATE"):
        time_column(table, INTEGERS)
    table = reader.parquet("time", [7.5], pa.float64())
    with pytest.raises(InputError, match="found DOUBLE"):
        time_column(table, INTEGERS)


@pytest.mark.parametrize("text", ["", "soon", "12", "epoch", "infinity", "2024-13-01", "1.5"])
def test_a_time_that_cannot_be_read_is_counted_and_named(reader: Reader, text: str) -> None:
    table = reader.csv("time", ["2024-01-01", text, "2024-01-02", text, text, text])
    with pytest.raises(InputError, match=r"column 'time'.*found 4 row\(s\) without one") as error:
        count_rows(reader.connection, table, [time_column(table, DATES)])
    shown = repr(text) if text else "nothing"
    assert f"first 3: row 2 has {shown}, row 4 has {shown}, row 5 has {shown}" in str(error.value)


def test_a_missing_time_is_allowed_where_it_is_optional(reader: Reader) -> None:
    table = reader.csv("time", ["2024-01-01T12:00", ""])
    assert reader.values(table, time_column(table, DATES, optional=True)) == [NOON, None]
    table = reader.csv("time", ["2024-01-01", "soon"])
    with pytest.raises(InputError, match="row 2 has 'soon'"):
        count_rows(reader.connection, table, [time_column(table, DATES, optional=True)])


def test_ids_are_text_or_integers(reader: Reader) -> None:
    table = reader.parquet("user", [7, -1], pa.int16())
    assert reader.values(table, text_column(table, "user")) == ["7", "-1"]
    table = reader.csv("user", ["007", "ü"])
    assert reader.values(table, text_column(table, "user")) == ["007", "ü"]
    table = reader.parquet("user", [7.0], pa.float64())
    with pytest.raises(InputError, match="expected text or integers, found DOUBLE"):
        text_column(table, "user")


def test_an_empty_id_is_refused(reader: Reader) -> None:
    table = reader.parquet("user", ["a", "", None], pa.string())
    with pytest.raises(InputError, match="first 2: row 2 has '', row 3 has nothing"):
        count_rows(reader.connection, table, [text_column(table, "user")])


def test_amounts(reader: Reader) -> None:
    table = reader.parquet("amount", [1.5, None, float("nan"), -2.0], pa.float64())
    assert reader.values(table, amount_column(table)) == [1.5, None, None, -2.0]
    table = reader.csv("amount", ["1e3", ""])
    assert reader.values(table, amount_column(table)) == [1000.0, None]
    table = reader.parquet("amount", ["x"], pa.large_string())
    with pytest.raises(InputError, match="row 1 has 'x'"):
        count_rows(reader.connection, table, [amount_column(table)])
    table = reader.parquet("amount", [True], pa.bool_())
    with pytest.raises(InputError, match="expected numbers, found BOOLEAN"):
        amount_column(table)


@pytest.mark.parametrize("amount", [float("inf"), -float("inf"), 1e300])
def test_an_amount_without_bounds_is_refused(reader: Reader, amount: float) -> None:
    table = reader.parquet("amount", [1.0, amount], pa.float64())
    with pytest.raises(InputError, match=r"column 'amount'.*first 1: row 2"):
        count_rows(reader.connection, table, [amount_column(table)])


def test_labels_are_class_numbers(reader: Reader) -> None:
    table = reader.csv("label", ["0", "12"])
    assert reader.values(table, label_column(table)) == [0, 12]
    for bad in ("-1", "1.0", "fraud", "", str(2**31)):
        table = reader.csv("label", ["0", bad])
        with pytest.raises(InputError, match=r"column 'label'.*first 1: row 2"):
            count_rows(reader.connection, table, [label_column(table)])
    table = reader.parquet("label", [True], pa.bool_())
    with pytest.raises(InputError, match="found BOOLEAN"):
        label_column(table)


def test_a_table_without_rows_is_refused(reader: Reader) -> None:
    table = reader.parquet("label", [], pa.int32())
    with pytest.raises(InputError, match="found an empty table"):
        count_rows(reader.connection, table, [label_column(table)])
