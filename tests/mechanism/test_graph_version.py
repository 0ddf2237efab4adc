"""Versions of a graph: keyed, equal for equal graphs, and a sketch that estimates shared edges."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.graph.ids import Ids
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.graph_version import BINS, version_of_graph
from vesper.privacy.ledger.overlap import EMPTY_SLOT, SLOT_DIGITS, shared_edges

KEY = b"k" * 32
NODES = 3000
RNG = np.random.default_rng(0)
PAIRS = np.unique(np.sort(RNG.integers(0, NODES, (20_000, 2)), axis=1), axis=0)
PAIRS = PAIRS[PAIRS[:, 0] != PAIRS[:, 1]]


def graph_of(pairs: NDArray[np.int64], ids: "pa.Array[Any]") -> Graph:
    ends = [(int(u), int(v)) for u, v in pairs]
    return replace(Graph.from_edges(NODES, ends), ids=Ids(ids))


def names(prefix: str = "card-") -> list[str]:
    return [f"{prefix}{k}" for k in range(NODES)]


GRAPH = graph_of(PAIRS, pa.array(names(), type=pa.large_string()))


def test_equal_graphs_have_equal_versions_and_everything_is_keyed() -> None:
    version = version_of_graph(GRAPH, key=KEY)
    assert version == version_of_graph(replace(GRAPH), key=KEY)
    assert version.num_nodes == NODES
    assert version.edges == fingerprint(GRAPH, key=KEY)
    assert len(version.sketch) == BINS * SLOT_DIGITS
    other = version_of_graph(GRAPH, key=b"x" * 32)
    assert (other.ids != version.ids, other.edges != version.edges) == (True, True)
    agreeing = sum(
        version.sketch[k : k + SLOT_DIGITS] == other.sketch[k : k + SLOT_DIGITS]
        for k in range(0, BINS * SLOT_DIGITS, SLOT_DIGITS)
    )
    assert agreeing == 0
    assert shared_edges(version, other) == 0


def test_one_edge_more_or_less_shares_nearly_all() -> None:
    version = version_of_graph(GRAPH, key=KEY)
    for k in range(5):
        toggled = replace(toggle_edge(GRAPH, (k, k + 1)), ids=GRAPH.ids)
        other = version_of_graph(toggled, key=KEY)
        assert other.edges != version.edges
        assert other.ids == version.ids
        assert 0.98 < shared_edges(version, other) < 1


@pytest.mark.parametrize("share", [0.9, 0.7, 0.5])
def test_the_share_of_edges_is_estimated(share: float) -> None:
    kept = round(share * len(PAIRS))
    fresh = RNG.integers(0, NODES, (len(PAIRS) - kept, 2))
    fresh = fresh[fresh[:, 0] != fresh[:, 1]]
    other = graph_of(np.concatenate([PAIRS[:kept], fresh]), pa.array(names()))
    estimate = shared_edges(version_of_graph(GRAPH, key=KEY), version_of_graph(other, key=KEY))
    assert estimate == pytest.approx(share, abs=0.1)  # three standard errors of 256 bins


def test_unrelated_graphs_share_next_to_nothing() -> None:
    other_edges = graph_of(RNG.integers(0, NODES, PAIRS.shape), pa.array(names()))
    one_less = PAIRS[1:]
    other_nodes = graph_of(one_less, pa.array(names("account-")))  # much the same numbers
    version = version_of_graph(GRAPH, key=KEY)
    for other in (other_edges, other_nodes):
        assert shared_edges(version, version_of_graph(other, key=KEY)) < 0.1


def test_new_pseudonyms_in_the_same_order_are_recognized_by_the_digest_of_edges() -> None:
    renamed = graph_of(PAIRS, pa.array(names("account-")))
    version, other = (version_of_graph(each, key=KEY) for each in (GRAPH, renamed))
    assert version.ids != other.ids
    assert version.sketch != other.sketch
    assert shared_edges(version, other) == 1


def test_another_order_of_nodes_has_another_digest_of_ids_and_the_same_sketch() -> None:
    order = RNG.permutation(NODES)  # node v of the other table is node order[v] of this one
    place = np.argsort(order)
    shuffled = graph_of(place[PAIRS], pa.array(names()).take(order))
    version, other = (version_of_graph(each, key=KEY) for each in (GRAPH, shuffled))
    assert other.ids != version.ids
    assert other.sketch == version.sketch
    assert shared_edges(version, other) > 0.99


def test_ids_count_as_text() -> None:
    """Integers, strings and a slice of a longer column; the texts are the same."""
    numbers = np.arange(NODES) * 7 - 50
    texts = [str(number) for number in numbers]
    columns: list[pa.Array[Any]] = [
        pa.array(numbers),
        pa.array(texts),
        pa.array(texts, type=pa.large_string()),
        pa.array(["x", "longer", *texts], type=pa.large_string()).slice(2),
    ]
    versions = [version_of_graph(graph_of(PAIRS, column), key=KEY) for column in columns]
    assert len({version.sketch for version in versions}) == 1
    assert len({version.ids for version in versions}) == 1


def test_neighbouring_texts_are_not_confused() -> None:
    """Concatenations are equal, texts are not."""
    one = replace(Graph.from_edges(2, [(0, 1)]), ids=Ids(pa.array(["ab", "c"])))
    other = replace(Graph.from_edges(2, [(0, 1)]), ids=Ids(pa.array(["a", "bc"])))
    versions = [version_of_graph(each, key=KEY) for each in (one, other)]
    assert versions[0].ids != versions[1].ids
    assert versions[0].sketch != versions[1].sketch


def test_without_ids_nodes_count_by_number() -> None:
    pairs = PAIRS.tolist()
    unnamed = version_of_graph(Graph.from_edges(NODES, pairs), key=KEY)
    numbered = version_of_graph(graph_of(PAIRS, pa.array(np.arange(NODES))), key=KEY)
    assert (unnamed.ids, unnamed.sketch) == (numbered.ids, numbered.sketch)


def test_few_edges_leave_bins_empty() -> None:
    slots = version_of_graph(Graph.from_edges(3, [(0, 1), (1, 2)]), key=KEY).sketch
    used = [
        slots[k : k + SLOT_DIGITS]
        for k in range(0, len(slots), SLOT_DIGITS)
        if slots[k : k + SLOT_DIGITS] != EMPTY_SLOT
    ]
    assert 1 <= len(used) <= 2
    empty = version_of_graph(Graph.from_edges(3, []), key=KEY).sketch
    assert empty == EMPTY_SLOT * BINS
