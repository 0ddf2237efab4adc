"""Ids of any kind are matched to nodes, and no two ids are ever treated as one."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from vesper.graph.edges.edge_relation import edges_of
from vesper.graph.ids import Ids, numbers_of

if TYPE_CHECKING:
    from tests.graph.conftest import Columns, Party


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_text_ids(party: "Party", kind: str) -> None:
    tables: dict[str, Columns] = {
        "nodes": {"id": ["007", "7", "ann"], "age": [1.0, 2.0, 3.0]},
        "edges": {"src": ["007", "7"], "dst": ["ann", "ann"]},
        "labels": {"id": ["ann"], "label": ["risky"], "split": ["train"]},
    }
    data = party.write(kind=kind, **tables).open_data()
    assert data.ids.values.to_pylist() == ["007", "7", "ann"]
    assert list(edges_of(data.graph)) == [(0, 2), (1, 2)]
    assert party.check().edges == 2


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_strange_text_ids(party: "Party", kind: str) -> None:
    strange = ['a"b', "c\nd", "\u96ea\U0001f600", "o'x", "a,b", " sp ", "\t", "NULL", "nan"]
    tables: dict[str, Columns] = {
        "nodes": {"id": strange},
        "edges": {"src": strange[:-1], "dst": strange[1:]},
        "labels": {"id": strange, "label": [0] * 9, "split": ["train"] * 9},
    }
    party.write(kind=kind, **tables)
    by_bytes = sorted(strange, key=str.encode)
    assert party.open_data().ids.values.to_pylist() == by_bytes
    assert (party.check().edges, party.check().labels) == (8, 9)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_largest_and_smallest_numbers(party: "Party", kind: str) -> None:
    large, small = 2**63 - 1, -(2**63)
    tables: dict[str, Columns] = {
        "nodes": {"id": [large, small, 0]},
        "edges": {"src": [large, 0], "dst": [0, small]},
        "labels": {"id": [large, small], "label": [0, 1], "split": ["train", "val"]},
    }
    data = party.write(kind=kind, **tables).open_data()
    assert data.ids.are_integers
    assert data.ids.values.to_pylist() == [small, 0, large]
    assert list(edges_of(data.graph)) == [(0, 1), (1, 2)]
    assert party.check().labels == 2


def test_only_canonical_numbers_are_read_as_numbers() -> None:
    texts = ["0", "-5", "007", "+7", "7.0", "-0", "", str(2**63 - 1), str(2**63), "9" * 30]
    numbers = numbers_of(pa.array(texts, type=pa.large_string()))
    assert numbers.to_pylist() == [0, -5, *[None] * 5, 2**63 - 1, None, None]


def test_texts_that_are_not_ids_are_not_found() -> None:
    ids = Ids(pa.array([7, 8]))
    assert ids.find_texts(["8", "007", "x", "", str(2**64)]).tolist() == [1, -1, -1, -1, -1]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_labels_of_text_ids_that_all_look_like_numbers(party: "Party", kind: str) -> None:
    """Parties exchange ids as text, so they are compared as text."""
    tables: dict[str, Columns] = {
        "nodes": {"id": ["10", "010", "x"]},
        "edges": {"src": ["10"], "dst": ["x"]},
        "labels": {"id": [10], "label": [0], "split": ["train"]},
    }
    assert party.write(kind=kind, **tables).check().labels == 1


def test_edges_and_nodes_of_two_kinds(party: "Party") -> None:
    party.write(edges={"src": ["10"], "dst": ["20"]})
    assert "column src: expected whole numbers like the node ids, got text" in party.refused()
    party.write(kind="csv", edges={"src": ["x10"], "dst": ["20"]})
    assert "column src: 1 rows name an id that is not a node (first 1: x10)" in party.refused()
    party.write(nodes={"id": [0.5, 1.5, 2.5], "f": [0.0] * 3})
    assert "column id: expected whole numbers or text as ids, got double" in party.refused()
    party.write(nodes={"id": pa.array([2**64 - 1], pa.uint64())})
    assert "column id: expected ids that fit a signed 64-bit integer, got uint64" in party.refused()


def test_missing_ids(party: "Party") -> None:
    party.write(nodes={"id": [10, None, 30], "f": [0.0, 1.0, 2.0]})
    assert "column id: 1 rows have no id (first 1: row 2)" in party.refused()
    assert not (party.data / ".vesper-cache").exists()
    party.write(edges={"src": [10, None], "dst": [20, 20]})
    assert "column src: 1 rows have no id (first 1: row 2)" in party.refused()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_arrow_string_type_is_text(party: "Party", kind: pa.DataType) -> None:
    tables: dict[str, Columns] = {
        "nodes": {"id": pa.array(["a", "b"], type=kind)},
        "edges": {"src": pa.array(["a"], type=kind), "dst": pa.array(["b"], type=kind)},
        "labels": {
            "id": pa.array(["a", "b"], type=kind),
            "label": pa.array(["risky", "fine"], type=kind),
            "split": pa.array(["train", "test"], type=kind),
        },
    }
    summary = party.write(kind="parquet", **tables).check()
    assert (summary.edges, summary.classes, summary.test) == (1, 2, 1)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_repeated_and_unknown_ids_are_counted_and_named(party: "Party", kind: str) -> None:
    party.write(kind=kind, nodes={"id": [1, 1, 2, 2], "f": [0.0] * 4})
    expected = "column id: 2 ids appear in more than one row (first 2: 1, 2)"
    assert f"nodes.{kind}, {expected}" in party.refused()
    party.write(kind=kind, nodes={"key": [1], "f": [0.0]})
    assert f"nodes.{kind}: expected a column 'id'" in party.refused()
    party.write(kind=kind, edges={"src": [10, 77, 78, 79, 77], "dst": [20] * 5})
    expected = "column src: 4 rows name an id that is not a node (first 3: 77, 78, 79)"
    assert f"edges.{kind}, {expected}" in party.refused()


def test_a_message_stays_one_line_whatever_the_ids(party: "Party") -> None:
    party.write(nodes={"id": ["a\nb", "a\nb"]})
    assert "1 ids appear in more than one row (first 1: 'a\\nb'); keep one row" in party.refused()


def test_order_as_text() -> None:
    numbers = [0, 7, -7, 70, 700, 71, -70, 8, 2**63 - 1, -(2**63), 10**18, 10**17, 9, 99, 100]
    order = Ids(pa.array(numbers, type=pa.int64())).order_as_text()
    assert order is not None
    assert [str(numbers[k]) for k in order] == sorted(map(str, numbers))
    assert Ids(pa.array([10, 11, 99], type=pa.int64())).order_as_text() is None
    assert Ids(pa.array(["a", "b"], type=pa.large_string())).order_as_text() is None
