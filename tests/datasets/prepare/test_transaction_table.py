from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.datasets.prepare.transaction_table import open_table, scan
from vesper.errors import InputError


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def rows_of(connection: duckdb.DuckDBPyConnection, path: Path) -> list[tuple[object, ...]]:
    table = open_table(connection, path)
    return scan(connection, table, f"SELECT * FROM {table.sql}")


def test_csv_cells_stay_text(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfid,"a ""b"""\r\n007,"x,\ny"\r\n8,\r\n')
    assert open_table(connection, path).columns == {"id": "VARCHAR", 'a "b"': "VARCHAR"}
    assert rows_of(connection, path) == [("007", "x,\ny"), ("8", None)]


def test_parquet_keeps_its_types(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = tmp_path / "it's.parquet"
    pq.write_table(pa.Table.from_pylist([{"id": 7, "kind": "x"}]), path)
    assert open_table(connection, path).columns == {"id": "BIGINT", "kind": "VARCHAR"}


def test_a_column_without_any_value_is_text(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist([{"id": 7, 'a "b"': None}]), path)
    assert open_table(connection, path).columns == {"id": "BIGINT", 'a "b"': "VARCHAR"}
    assert rows_of(connection, path) == [(7, None)]


def test_a_missing_column_gets_a_suggestion(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("tmie,user\n1,2\n")
    with pytest.raises(InputError, match=r"expected a column 'time'.*rename 'tmie'"):
        open_table(connection, path).require(("time", "user"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "found an empty file"),
        ("t.parquet", b"", "found an empty file"),
        ("t.parquet", b"time,user\n1,2\n", "expected a Parquet file"),
        ("t.parquet", b"PAR1 but not really PAR1", "expected a Parquet file"),
        ("t.json", b"{}", r"expected a \.parquet or \.csv file"),
        ("t.csv", b"a,a\n1,2\n", "a name for each column"),
        ("t.csv", b"a,\n1,2\n", "a name for each column"),
        (
            "t.csv",
            b"a,b\n1,\xff\n",
            r"UTF-8 text, found 1 line\(s\) that are not \(first 1: line 2\)",
        ),
        ("t.csv", b"a,b\n1,2,3\n4,5\n", "cannot be read as CSV.*Line: 2"),
        ("t.csv", b"a,b\n" + b"1,2\n" * 20_000 + b"\xff,3\n", "first 1: line 20002"),
        ("t.csv", b"PAR1\x00\x01\x80\x81", "UTF-8"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        rows_of(connection, path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "name", ["*", "?", "[ab]", "a*", "**", "[!b]", "it's [1]", "k=1/[x]/a", "{a,b}?", "~", "a\\b"]
)
def test_a_name_is_never_read_as_a_pattern(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, name: str, kind: str
) -> None:
    for other in ("a", "b", "ab", "k=1/x/a", name):
        path = tmp_path / f"{other}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "csv":
            path.write_text(f'v\n"{other}"\n')
        else:
            pq.write_table(pa.table({"v": [other]}), path)
    assert open_table(connection, path).columns == {"v": "VARCHAR"}
    assert rows_of(connection, path) == [(name,)]


def test_a_relative_name_is_never_read_as_an_address(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("~", "s3:", "file:"):
        Path(folder).mkdir()
        Path(folder, "t.csv").write_text(f"v\n{folder}\n")
        assert rows_of(connection, Path(folder, "t.csv")) == [(folder,)]


def test_a_name_that_cannot_be_escaped_is_refused(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "a\\b[1].csv"
    path.write_text("v\n1\n")
    with pytest.raises(InputError, match="rename it"):
        open_table(connection, path)


def test_a_missing_file_is_refused(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found none; check the path"):
        open_table(connection, tmp_path / "absent.parquet")
    with pytest.raises(InputError, match="found none; check the path"):
        open_table(connection, tmp_path)


def test_running_out_of_memory_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    connection = duckdb.connect()
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    table = open_table(connection, path)
    connection.execute("SET memory_limit = '20MB'")
    connection.execute("SET temp_directory = ''")
    with pytest.raises(duckdb.OutOfMemoryException):
        scan(connection, table, f"SELECT list(r ORDER BY -r) FROM {table.sql}, range(9000000) t(r)")


def test_too_many_columns_are_refused(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{k}" for k in range(60_000)) + "\n")
    with pytest.raises(InputError, match="at most 16,384 columns, found 60,000"):
        open_table(connection, path)


def test_a_column_name_that_is_not_utf8(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": [1]}), path)
    path.write_bytes(path.read_bytes().replace(b"age", b"\xff\xfee"))
    with pytest.raises(InputError, match=r"t\.parquet"):
        open_table(connection, path)
