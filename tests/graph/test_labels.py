"""The label party's table, and whether it matches the data party's."""

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from vesper.errors import InputError

if TYPE_CHECKING:
    from tests.graph.conftest import Columns, Party


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_valid_labels(party: "Party", kind: str) -> None:
    labels = party.write(kind=kind).open_labels()
    assert labels.classes == (0, 1)
    assert labels.labels.tolist() == [1, 0]
    assert labels.rows("test").tolist() == [1]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_are_sorted_by_ascending_id(party: "Party", kind: str) -> None:
    swapped = pa.table(dict(party.labels)).take([1, 0])
    party.write(kind=kind, labels=swapped.to_pydict())
    labels = party.open_labels()
    assert labels.ids.take(range(2)) == sorted(labels.ids.take(range(2)))
    assert labels.labels.tolist() == [1, 0]
    assert labels.rows("test").tolist() == [1]


@pytest.mark.parametrize("values", [[True, False], pa.array(["no", "yes"]).dictionary_encode()])
def test_boolean_and_dictionary_labels(party: "Party", values: object) -> None:
    party.write(labels={**party.labels, "label": values})
    assert len(party.open_labels().classes) == 2


def test_a_table_with_a_single_class(party: "Party") -> None:
    assert party.write(labels={**party.labels, "label": [1, 1]}).check().classes == 1


BAD: list[tuple["Columns", str]] = [
    ({"id": [10, 99], "label": [0, 1], "split": ["train", "val"]}, r"not a node \(first 1: 99\)"),
    ({"id": [10, 10], "label": [0, 1], "split": ["val", "val"]}, r"1 ids appear in more than one"),
    (
        {"id": [10], "label": [0], "split": ["dev"]},
        r"none of train, val, test; leave out rows .* \(first",
    ),
    ({"id": [10], "label": [0], "split": [1]}, r"column split: 1 rows are none of train, val"),
    ({"id": [10], "y": [0], "split": ["val"]}, r"expected a column 'label', found 'id', 'y'"),
    ({"id": [10], "label": pa.nulls(1, pa.int64()), "split": ["val"]}, r"1 rows have no label"),
]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(("table", "message"), BAD)
def test_bad_labels_name_their_file(
    party: "Party", kind: str, table: "Columns", message: str
) -> None:
    assert re.search(rf"labels\.{kind}.*{message}", party.write(kind=kind, labels=table).refused())


@pytest.mark.parametrize("column", ["label", "split"])
def test_columns_of_lists_are_refused(party: "Party", column: str) -> None:
    party.write(labels={**party.labels, column: [[1], [2]]})
    assert re.search(rf"column {column}: expected .*, got list", party.refused())


@pytest.mark.parametrize("stray", ["nan", "NA", "inf", "None"])
@pytest.mark.parametrize("number", ["1", "2.5"])
def test_a_missing_number_among_numbers_is_not_a_class(
    party: "Party", number: str, stray: str
) -> None:
    party.write(kind="csv", labels={**party.labels, "label": [number, stray]})
    with pytest.raises(InputError, match=r"column label: 1 rows are not a number; leave .* id "):
        party.open_labels()


def test_a_class_may_be_called_none(party: "Party") -> None:
    party.write(kind="csv", labels={**party.labels, "label": ["some", "none"]})
    assert party.open_labels().classes == ("none", "some")


@pytest.mark.parametrize(("label", "is_class"), [("0.5", False), ("1.0", True), ("one", True)])
def test_decimals_in_a_csv_are_not_classes(party: "Party", label: str, is_class: bool) -> None:
    party.write(kind="csv", labels={**party.labels, "label": ["2", label]})
    if is_class:
        assert len(party.open_labels().classes) == 2
        return
    with pytest.raises(InputError, match="1 rows have decimals and are not classes; set task"):
        party.open_labels()
