"""Tables have the format that their names claim and the columns they need; CSV stays text."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.graph.table_source import BATCH_ROWS, MAX_COLUMNS, open_source, open_table

if TYPE_CHECKING:
    from tests.graph.conftest import Party


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("near", ["source", "SRC", " src", "srcs"])
def test_a_misnamed_column_gets_a_suggestion(party: "Party", kind: str, near: str) -> None:
    message = party.write(kind=kind, edges={near: [10], "dst": [20]}).refused()
    assert f"edges.{kind}: expected a column 'src', found '{near}', 'dst'; " in message
    assert f"rename '{near}' to 'src'" in message


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_wrong_separators_are_named(party: "Party", mark: str) -> None:
    party.write(kind="csv")
    (party.data / "edges.csv").write_text(f"src{mark}dst\n10{mark}20\n")
    assert f"separate its columns with ',', not {mark!r}" in party.refused()


def test_files_whose_content_is_not_what_the_name_says(party: "Party") -> None:
    party.write()
    (party.data / "edges.parquet").write_text("src,dst\n10,20\n")
    assert "edges.parquet: the name says Parquet, but the content is something" in party.refused()
    party.write(kind="csv")
    pq.write_table(pa.table(party.edges), party.data / "edges.csv")
    assert "edges.csv: the name says CSV, but the content is binary" in party.refused()
    party.write()
    whole = (party.data / "nodes.parquet").read_bytes()
    (party.data / "nodes.parquet").write_bytes(whole[: len(whole) // 2])
    assert "nodes.parquet: not a readable Parquet file" in party.refused()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("name", ["data/nodes", "data/edges", "label/labels"])
def test_empty_files(party: "Party", kind: str, name: str) -> None:
    party.write(kind=kind)
    (party.data.parent / f"{name}.{kind}").write_bytes(b"")
    assert f"{name}.{kind}: the file is empty" in party.refused()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_tables_without_rows(party: "Party", kind: str) -> None:
    none = pa.array([], type=pa.int64())
    party.write(kind=kind, nodes={"id": none, "f": none}, edges={"src": none, "dst": none})
    assert f"nodes.{kind}: expected at least one row, found none" in party.refused()
    party.write(kind=kind, labels={"id": none, "label": none, "split": none})
    assert f"labels.{kind}: expected at least one row, found none" in party.refused()


def test_csv_that_is_not_utf8_names_its_lines(party: "Party") -> None:
    party.write(kind="csv")
    (party.data / "nodes.csv").write_bytes(b"id,f\nann,1\nM\xfcller,2\nZo\xeb,3\n")
    message = party.refused()
    assert "nodes.csv: 2 lines are not UTF-8 text (first 2: line 3, line 4)" in message


def test_csv_lines_with_too_many_cells(party: "Party") -> None:
    party.write(kind="csv")
    (party.data / "edges.csv").write_text("src,dst\n10,20,30\n")
    refusal = party.refused()  # a reader with one thread names the row, too
    assert "edges.csv: cannot be read (CSV parse error: " in refusal
    assert "Expected 2 columns" in refusal


def test_missing_and_duplicate_tables(party: "Party") -> None:
    party.write()
    pa_csv.write_csv(pa.table(party.edges), party.data / "edges.csv")
    assert "found both edges.parquet and edges.csv; keep one" in party.refused()
    for name in ("edges.csv", "edges.parquet"):
        (party.data / name).unlink()
    assert "expected edges.parquet or edges.csv, found 'nodes.parquet'" in party.refused()
    with pytest.raises(InputError, match="expected a folder"):
        open_source(party.data / "nowhere", "nodes")


def test_repeated_column_names(party: "Party") -> None:
    party.write(kind="csv")
    (party.data / "edges.csv").write_text("src,src,dst\n10,20,30\n")
    assert "expected distinct column names, found 'src' more than once" in party.refused()


def test_a_cell_may_contain_a_newline_at_the_end_of_a_block(tmp_path: Path) -> None:
    texts = ["a\nb" * 20 + str(k) for k in range(BATCH_ROWS)]
    pa_csv.write_csv(pa.table({"id": texts}), tmp_path / "nodes.csv")
    assert (tmp_path / "nodes.csv").stat().st_size > 1 << 25, "more than one block"
    batches = list(open_source(tmp_path, "nodes").batches(["id"]))
    assert len(batches) > 1
    assert [text for batch in batches for text in batch.column("id").to_pylist()] == texts


def test_a_folder_without_read_permission(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(InputError, match="a readable folder, got 'Permission denied'"):
        open_source(tmp_path, "nodes")


def test_a_column_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table({"id": [1], "age": [2]}), path)
    path.write_bytes(path.read_bytes().replace(b"age", b"\xff\xfee"))
    with pytest.raises(InputError, match="not a readable Parquet file"):
        open_table(path)


@pytest.mark.parametrize("store_schema", [True, False])
def test_any_change_of_a_byte_of_the_schema_is_refused_or_harmless(
    tmp_path: Path, store_schema: bool
) -> None:
    path = tmp_path / "nodes.parquet"
    table = pa.table({"id": pa.array(["a", "b"]), "age": pa.array([1, 2], pa.uint8())})
    pq.write_table(table, path, store_schema=store_schema)
    content = path.read_bytes()
    refused = 0
    for place in range(max(0, len(content) - 400), len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                source = open_table(path)
                list(source.batches(source.columns))
            except InputError:
                refused += 1
    assert refused > 0


def test_text_that_is_not_utf8_in_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    pq.write_table(
        pa.table({"id": ["anna", "berta"]}), path, compression="none", write_statistics=False
    )
    path.write_bytes(path.read_bytes().replace(b"berta", b"b\xffrta"))
    with pytest.raises(InputError, match="UTF8"):
        list(open_table(path).batches(["id"]))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_too_many_columns_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"nodes.{kind}"
    names = [f"c{k}" for k in range(MAX_COLUMNS)]
    for too_many in (False, True):
        columns = [*names, "more"] if too_many else names
        if kind == "csv":
            path.write_text(",".join(columns) + "\n")
        else:
            pq.write_metadata(pa.schema([(name, pa.int64()) for name in columns]), str(path))
        if too_many:
            with pytest.raises(InputError, match=r"at most 16,384 columns, found 16,385; write a"):
                open_table(path)
        else:
            assert open_table(path).columns == tuple(names)


def test_many_columns_are_refused_before_they_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(",".join(f"c{k}" for k in range(60_000)) + "\n")
    monkeypatch.setattr(pa_csv, "open_csv", lambda *_, **__: pytest.fail("it was parsed"))
    with pytest.raises(InputError, match=r"found 60,000"):
        open_table(path)
    path.write_bytes(b"x" * (1 << 23) + b"\n")
    with pytest.raises(InputError, match="one of more than 8 MiB; write one row per line"):
        open_table(path)
