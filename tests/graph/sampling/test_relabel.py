import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.graph.sampling.relabel import (
    EDGES_A_PIECE,
    WORDS_A_PIECE,
    find_new_nodes,
    look_up,
    place_new_nodes,
    place_roots,
)
from vesper.parallel.pool import run

NUM_WORDS = 2 * WORDS_A_PIECE + 3
NUM_NODES = NUM_WORDS * 64


def bitmap(nodes: NDArray[np.int64]) -> NDArray[np.uint64]:
    bits = np.zeros(NUM_NODES, dtype=np.uint8)
    bits[nodes] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)


def some_nodes(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).choice(NUM_NODES, count, replace=False)


def test_roots_are_placed_as_given_and_repeats_counted() -> None:
    seen = np.zeros(NUM_WORDS, dtype=np.uint64)
    places = np.full(NUM_NODES, -1, dtype=np.int32)
    roots = some_nodes(100, seed=0)
    assert place_roots(roots, seen, places) == 0
    np.testing.assert_array_equal(places[roots], np.arange(100))
    np.testing.assert_array_equal(seen, bitmap(roots))
    assert place_roots(roots[:7], seen, places) == 7


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_new_nodes_are_numbered_in_ascending_order(num_threads: int) -> None:
    known = some_nodes(1000, seed=0)
    reached = [some_nodes(5000, seed=1 + thread) for thread in range(num_threads)]
    new = np.setdiff1d(np.concatenate(reached), known)
    seen, marks = bitmap(known), np.stack([bitmap(nodes) for nodes in reached])

    counts = np.empty(-(-NUM_WORDS // WORDS_A_PIECE) + 1, dtype=np.int64)
    find_new_nodes(marks, seen, counts)
    np.testing.assert_array_equal(seen, bitmap(np.union1d(known, new)))
    bounds = np.arange(len(counts)) * WORDS_A_PIECE * 64
    np.testing.assert_array_equal(counts, np.searchsorted(new, bounds))

    nodes = np.full(1000 + len(new), -1, dtype=np.int64)
    places = np.full(NUM_NODES, -1, dtype=np.int32)
    run(
        place_new_nodes,
        marks[0],
        counts,
        1000,
        nodes,
        places,
        num_pieces=len(counts) - 1,
        num_threads=num_threads,
    )
    np.testing.assert_array_equal(nodes[1000:], new)
    np.testing.assert_array_equal(places[new], np.arange(1000, 1000 + len(new)))
    assert (places >= 0).sum() == len(new)
    assert not marks.any()


def test_look_up_over_several_pieces() -> None:
    places = np.random.default_rng(0).permutation(NUM_NODES).astype(np.int32)
    drawn = np.random.default_rng(1).integers(0, NUM_NODES, 2 * EDGES_A_PIECE + 5, dtype=np.int32)
    indices = np.empty(len(drawn), dtype=np.int32)
    run(look_up, drawn, places, indices, num_pieces=3, num_threads=2)
    np.testing.assert_array_equal(indices, places[drawn])
