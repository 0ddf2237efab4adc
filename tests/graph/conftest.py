"""A small pair of party folders, to test what is read and what is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.graph.summary import Summary, summarize

Columns = Mapping[str, object]


class Party:
    """Both folders below one root. The edges include the self-loop 30-30, and 10-20 twice."""

    nodes: ClassVar[Columns] = {
        "id": [10, 20, 30],
        "age": [1.0, 2.0, 3.0],
        "score": [0.5, 0.25, 0.125],
    }
    edges: ClassVar[Columns] = {"src": [10, 20, 30, 10], "dst": [20, 10, 30, 30]}
    labels: ClassVar[Columns] = {"id": [10, 30], "label": [1, 0], "split": ["train", "test"]}

    def __init__(self, root: Path) -> None:
        self.data, self.label = root / "data", root / "label"
        self.data.mkdir()
        self.label.mkdir()

    def write(self, *, kind: str = "parquet", **tables: Columns) -> "Party":
        """Write all three tables; those given replace the valid defaults."""
        for name, folder in (("nodes", self.data), ("edges", self.data), ("labels", self.label)):
            for old in folder.glob(f"{name}.*"):
                old.unlink()
            table = pa.table(dict(tables.get(name, getattr(self, name))))
            if kind == "csv":
                pa_csv.write_csv(table, folder / f"{name}.csv")
            else:
                pq.write_table(table, folder / f"{name}.parquet")
        return self

    def open_data(self) -> DataHoldings:
        return open_data(self.data)

    def open_labels(self) -> LabelHoldings:
        return open_labels(self.label)

    def check(self) -> Summary:
        return summarize(self.open_data(), self.open_labels())

    def refused(self) -> str:
        """Open everything; return the one-line message, and check that no partial cache is left."""
        with pytest.raises(InputError) as caught:
            self.check()
        assert not list(self.data.glob(".vesper-cache/partial-*"))
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def party(tmp_path: Path) -> Party:
    return Party(tmp_path)
