from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError
from vesper.graph import table_source as source_module
from vesper.graph.csr import build_csr
from vesper.graph.edges.edge_relation import edges_of
from vesper.graph.graph import Graph
from vesper.graph.ids import Ids
from vesper.graph.table_source import open_source


def ids(num_nodes: int) -> Ids:
    return Ids(pa.array(range(num_nodes), type=pa.int64()))


def write(folder: Path, pairs: list[tuple[int, int]]) -> Path:
    src = pa.array([a for a, _ in pairs], type=pa.int64())
    dst = pa.array([b for _, b in pairs], type=pa.int64())
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "edges.parquet")
    return folder


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=60),
        )
    )
)
def test_round_trip_against_a_naive_build(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[int, list[tuple[int, int]]]
) -> None:
    num_nodes, pairs = case
    folder = write(tmp_path_factory.mktemp("edges"), pairs)
    indptr, neighbors, counts = build_csr(open_source(folder, "edges"), ids(num_nodes))
    graph = Graph(indptr=indptr, neighbors=neighbors)

    naive: dict[int, set[int]] = {v: set() for v in range(num_nodes)}
    for a, b in pairs:
        if a != b:
            naive[a].add(b)
            naive[b].add(a)
    for v in range(num_nodes):
        assert neighbors[indptr[v] : indptr[v + 1]].tolist() == sorted(naive[v])
    assert set(edges_of(graph)) == {(min(p), max(p)) for p in pairs if p[0] != p[1]}
    assert counts.rows == len(pairs)
    assert counts.self_loops == sum(a == b for a, b in pairs)
    assert counts.rows == counts.edges + counts.self_loops + counts.merged


def test_the_batch_size_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 300, size=(5000, 2))]
    source = open_source(write(tmp_path, pairs), "edges")
    whole = build_csr(source, ids(300))
    monkeypatch.setattr(source_module, "BATCH_ROWS", 1024)
    pieces = build_csr(source, ids(300))
    assert len(list(source.batches(["src"]))) > 1
    assert np.array_equal(whole[0], pieces[0])
    assert np.array_equal(whole[1], pieces[1])
    assert whole[2] == pieces[2]


def test_neighbors_are_int32(tmp_path: Path) -> None:
    _, neighbors, _ = build_csr(open_source(write(tmp_path, [(0, 1)]), "edges"), ids(2))
    assert neighbors.dtype == np.int32


def test_endpoints_that_are_not_nodes_are_refused_with_a_count(tmp_path: Path) -> None:
    folder = write(tmp_path, [(0, 1), (1, 9), (0, 8), (1, 7), (0, 6)])
    with pytest.raises(InputError, match=r"column dst: 4 rows .*first 3: 9, 8, 7"):
        build_csr(open_source(folder, "edges"), ids(2))


def test_an_edge_table_without_rows(tmp_path: Path) -> None:
    indptr, neighbors, counts = build_csr(open_source(write(tmp_path, []), "edges"), ids(3))
    assert indptr.tolist() == [0, 0, 0, 0]
    assert len(neighbors) == counts.edges == 0
