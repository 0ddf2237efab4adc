"""The table has every kind of work at every size, and the picture shows the cost per edge."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.growth import WORK, WorkCost, measure_work, page, picture, table, write_tables

from vesper.graph.holdings import open_data

COSTS = [
    WorkCost(work, edges, seconds=edges * 1e-8, peak_bytes=edges * 20, resting_bytes=edges * 4)
    for edges in (1_000_000, 4_000_000)
    for work in WORK
]


def test_written_tables_contain_each_edge_of_the_graph_once(tmp_path: Path) -> None:
    edges = write_tables(20_000, tmp_path / "data")
    graph = open_data(tmp_path / "data").graph
    assert len(graph.neighbors) == edges
    written = pq.read_table(tmp_path / "data" / "edges.parquet")
    assert len(written) == edges // 2
    assert np.all(written["src"].to_numpy() < written["dst"].to_numpy())


def test_each_work_is_measured_in_a_separate_process(tmp_path: Path) -> None:
    edges = write_tables(20_000, tmp_path / "data")
    for work in WORK:
        cost = measure_work(work, tmp_path / "data", edges)
        assert cost.seconds > 0
        assert cost.peak_bytes > 1 << 20
        assert cost.resting_bytes > 4 * edges
    with pytest.raises(SystemExit, match="ended with"):
        measure_work("build", tmp_path / "none", edges)


def test_the_page_has_a_row_per_cost_and_a_picture() -> None:
    rows = list(table(COSTS))[2:]
    assert rows[0] == "| build | 1.0 M | 0.01 | 10.0 | 0.02 | 4.00 |"
    assert rows[-1] == "| sample | 4.0 M | 0.04 |  | 0.07 |  |"
    assert len(rows) == len(COSTS)
    assert "growth.svg" in page(COSTS, "command", load=0.5)
    drawn = picture(COSTS)
    assert all(word in drawn for word in ("build", "release", "sample", "ns per additional edge"))
