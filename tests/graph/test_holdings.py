"""Opening a data party's folder: its contents, and the cache next to it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from vesper.errors import VesperError
from vesper.graph.edges.edge_relation import edges_of
from vesper.graph.holdings import CACHE, open_data
from vesper.mechanism.fingerprint import fingerprint

if TYPE_CHECKING:
    from tests.graph.conftest import Party


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_valid_folder(party: "Party", kind: str) -> None:
    data = party.write(kind=kind).open_data()
    assert data.ids.values.to_pylist() == [10, 20, 30]
    assert data.features.tolist() == [[1.0, 0.5], [2.0, 0.25], [3.0, 0.125]]
    assert list(edges_of(data.graph)) == [(0, 1), (0, 2)]
    assert (data.counts.self_loops, data.counts.merged) == (1, 1)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_no_edges_and_no_features(party: "Party", kind: str) -> None:
    none = pa.array([], type=pa.int64())
    data = party.write(
        kind=kind, nodes={"id": [10, 20, 30]}, edges={"src": none, "dst": none}
    ).open_data()
    assert data.features.shape == (3, 0)
    assert data.graph.num_nodes == 3
    assert data.graph.num_edges == 0


def test_the_graph_is_frozen(party: "Party") -> None:
    graph = party.write().open_data().graph
    with pytest.raises(ValueError, match="read-only"):
        graph.neighbors[0] = 2


def test_a_second_open_reads_the_cache_unless_tables_changed(party: "Party") -> None:
    tasks: list[str] = []

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        tasks.append(task)

    open_data(party.write().data, progress=progress)
    assert "placing edges" in tasks
    tasks.clear()
    again = open_data(party.data, progress=progress)
    assert tasks == []
    assert list(edges_of(again.graph)) == [(0, 1), (0, 2)]
    party.write(edges={"src": [20], "dst": [30]})
    assert list(edges_of(party.open_data().graph)) == [(1, 2)]
    assert len(list((party.data / CACHE).iterdir())) == 1


def test_a_table_of_the_same_size_and_time_is_read_again(party: "Party") -> None:
    """The change is in the middle, so that both ends of the file stay the same."""
    ids = list(range(1000, 5000))
    nodes = {"id": ids}
    edges = {"src": ids[:-1], "dst": ids[1:]}
    assert party.write(kind="csv", nodes=nodes, edges=edges).open_data().counts.edges == 3999
    path = party.data / "edges.csv"
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"2999,3000", b"2999,2999"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert party.open_data().counts.edges == 3998


@pytest.mark.parametrize(
    "name", ["ids.arrow", "features.npy", "indptr.npy", "neighbors.npy", "counts.json"]
)
def test_a_damaged_cache_is_rebuilt(party: "Party", name: str) -> None:
    party.write().open_data()
    (cache,) = (party.data / CACHE).iterdir()
    whole = (cache / name).read_bytes()
    for damaged in (whole[:-9], b"something else", None):
        (cache / name).unlink()
        if damaged is not None:
            (cache / name).write_bytes(damaged)
        assert list(edges_of(party.open_data().graph)) == [(0, 1), (0, 2)]
        assert (cache / name).read_bytes() == whole


def test_arrays_that_do_not_fit_together_are_rebuilt(party: "Party") -> None:
    party.write().open_data()
    (cache,) = (party.data / CACHE).iterdir()
    np.save(cache / "neighbors.npy", np.zeros(2, np.int32))
    assert list(edges_of(party.open_data().graph)) == [(0, 1), (0, 2)]


def test_leftovers_of_a_killed_process_are_removed(party: "Party") -> None:
    leftover = party.data / CACHE / "partial-killed"
    leftover.mkdir(parents=True)
    (leftover / "features.npy").write_bytes(b"half")
    party.write().open_data()
    assert not leftover.exists()


def test_a_full_disk_is_a_failed_run_and_leaves_nothing(
    party: "Party", monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    party.write()
    monkeypatch.setattr(np, "save", refuse)
    with pytest.raises(VesperError, match=r"cannot be written \(No space left") as caught:
        party.open_data()
    assert caught.value.exit_code == 1
    assert not (party.data / CACHE).exists()


def test_a_folder_that_cannot_be_written_is_opened_without_a_cache(
    party: "Party", monkeypatch: pytest.MonkeyPatch
) -> None:
    party.write()

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert list(edges_of(party.open_data().graph)) == [(0, 1), (0, 2)]
    assert not (party.data / CACHE).exists()


def test_the_order_of_rows_does_not_matter(party: "Party", tmp_path: Path) -> None:
    """The same graph has the same fingerprint, hence the same budget, and no row order leaks."""
    party.write()
    first = party.open_data()
    nodes = {"id": [30, 20, 10], "age": [3.0, 2.0, 1.0], "score": [0.125, 0.25, 0.5]}
    edges = {"src": [30, 20, 10], "dst": [10, 10, 20]}
    party.write(nodes=nodes, edges=edges)
    second = party.open_data()
    assert second.ids.values.to_pylist() == first.ids.values.to_pylist()
    assert second.features.tolist() == first.features.tolist()
    assert list(edges_of(second.graph)) == list(edges_of(first.graph))
    key = bytes(32)
    assert fingerprint(second.graph, key=key) == fingerprint(first.graph, key=key)
