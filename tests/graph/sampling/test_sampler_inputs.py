"""Corner cases that the sampler accepts, and inputs that it refuses by name."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.graph.sampling import sampler as sampler_module
from vesper.graph.sampling.sampler import Sampler, sample


def clique(size: int) -> Graph:
    return Graph.from_edges(size, [(a, b) for a in range(size) for b in range(a)])


def test_no_roots() -> None:
    subgraph = sample(
        clique(3), np.array([], dtype=np.int64), num_layers=2, max_degree=2, seed=0, step=0
    )
    assert subgraph.nodes.tolist() == []
    assert [block.indptr.tolist() for block in subgraph.layers] == [[0], [0]]
    assert [block.num_senders for block in subgraph.layers] == [0, 0]


def test_no_nodes() -> None:
    graph = Graph.from_edges(0, [])
    nothing = np.array([], dtype=np.int64)
    assert len(sample(graph, nothing, num_layers=1, max_degree=1, seed=0, step=0).nodes) == 0


def test_isolated_nodes_have_empty_rows() -> None:
    graph = Graph.from_edges(5, [(0, 1)])
    subgraph = sample(graph, np.array([4, 0, 2]), num_layers=2, max_degree=9, seed=0, step=0)
    assert subgraph.nodes.tolist() == [4, 0, 2, 1]
    farther, nearer = subgraph.layers
    assert (nearer.indptr.tolist(), nearer.indices.tolist()) == ([0, 0, 1, 1], [3])
    assert (farther.indptr.tolist(), farther.indices.tolist()) == ([0, 0, 1, 1, 2], [3, 1])


def test_wide_and_memory_mapped_neighbours_give_the_same(tmp_path: Path) -> None:
    graph = clique(120)
    wide = Graph(graph.indptr, graph.neighbors.astype(np.int64))
    np.save(tmp_path / "neighbors.npy", graph.neighbors)
    mapped = Graph(graph.indptr, np.load(tmp_path / "neighbors.npy", mmap_mode="r"))
    plain, *others = (
        sample(g, np.arange(0, 99, 2), num_layers=2, max_degree=4, seed=1, step=1)
        for g in (graph, wide, mapped)
    )
    for other in others:
        np.testing.assert_array_equal(plain.nodes, other.nodes)
        for a, b in zip(plain.layers, other.layers, strict=True):
            np.testing.assert_array_equal(a.indices, b.indices)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"num_layers": 0}, "num_layers"),
        ({"max_degree": 0}, "max_degree"),
        ({"num_threads": 0}, "num_threads"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
    ],
)
def test_wrong_settings_are_named(changed: dict[str, Any], named: str) -> None:
    right = {"num_layers": 1, "max_degree": 1, "seed": 0}
    with pytest.raises(InputError, match=f"^{named}: expected"):
        Sampler(clique(3), **{**right, **changed})


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        (np.array([0, 3, -1]), "expected node numbers from 0 to 2, got 2 others .*3, -1"),
        (
            np.array([0, 2, 0, 2]),
            "expected distinct nodes, got 2 of them more than once .*first 2: 0, 2",
        ),
        (np.array([0.5]), "expected a one-dimensional integer array, got float64"),
        (np.array([[0]]), "expected a one-dimensional integer array, got int64 of shape"),
    ],
)
def test_wrong_roots_are_named(roots: NDArray[np.int64], message: str) -> None:
    sampler = Sampler(clique(3), num_layers=1, max_degree=1, seed=0)
    with pytest.raises(InputError, match=message):
        sampler.sample(roots, step=0)


def test_a_wrong_step_is_named() -> None:
    sampler = Sampler(clique(3), num_layers=1, max_degree=1, seed=0)
    with pytest.raises(InputError, match=r"^step: expected"):
        sampler.sample(np.array([0]), step=-1)


def test_a_hop_too_large_for_int32_is_refused() -> None:
    sampler = Sampler(clique(30), num_layers=1, max_degree=9, seed=0)
    with (
        patch.object(sampler_module, "MOST_PLACES", 9),
        pytest.raises(InputError, match="9 edges for 1 nodes, more than 9"),
    ):
        sampler.sample(np.array([0]), step=0)
