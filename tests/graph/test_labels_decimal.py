"""Labels with decimals, where they are allowed."""

from typing import TYPE_CHECKING

import pytest

from vesper.errors import InputError
from vesper.graph.labels import open_labels

if TYPE_CHECKING:
    from tests.graph.conftest import Party


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_decimals_are_read_as_numbers(party: "Party", kind: str) -> None:
    party.write(kind=kind, labels={**party.labels, "label": [2.5, -1.25]})
    labels = open_labels(party.label, decimals=True)
    assert labels.classes == (-1.25, 2.5)
    assert labels.labels.tolist() == [1, 0]
    assert all(isinstance(value, float) for value in labels.classes)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("values", [[1, 0], ["no", "yes"]])
def test_other_labels_are_unchanged(party: "Party", kind: str, values: list[object]) -> None:
    party.write(kind=kind, labels={**party.labels, "label": values})
    plain, decimal = (open_labels(party.label, decimals=flag) for flag in (False, True))
    assert plain.classes == decimal.classes
    assert plain.labels.tolist() == decimal.labels.tolist()


def test_decimals_are_refused_where_classes_are_expected(party: "Party") -> None:
    party.write(labels={**party.labels, "label": [2.5, 1.0]})
    with pytest.raises(InputError, match="expected whole numbers or text, got double"):
        open_labels(party.label)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(party: "Party", value: float) -> None:
    party.write(labels={**party.labels, "label": [1.5, value]})
    with pytest.raises(InputError, match=r"1 rows have no finite label \(first 1: id 30\)"):
        open_labels(party.label, decimals=True)
