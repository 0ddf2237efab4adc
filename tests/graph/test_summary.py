"""The summary that `vesper data check` prints."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.graph.conftest import Party


def test_counts(party: "Party") -> None:
    summary = party.write().check()
    assert (summary.nodes, summary.edges, summary.directed_edges) == (3, 2, 4)
    assert (summary.features, summary.classes, summary.labels) == (2, 2, 2)
    assert (summary.train, summary.val, summary.test) == (1, 0, 1)
    assert (summary.isolated, summary.mean_degree, summary.max_degree) == (0, 4 / 3, 2)
    assert summary.bytes_per_directed_edge == 4.0
    assert summary.graph_bytes == 4 * 8 + 4 * 4
    assert summary.edge_rows == 4
    assert summary.self_loops_dropped == summary.duplicates_merged == 1
