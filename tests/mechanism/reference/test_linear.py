"""What holds for every linear aggregation: its bound, and that its two products agree."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import Edge, toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.reference.bounded_attention import BoundedAttention, SoftmaxAttention
from vesper.mechanism.reference.certify import certified_move, certify
from vesper.mechanism.reference.gcn import GcnAggregation
from vesper.mechanism.reference.gcn_clamped import ClampedGcn
from vesper.mechanism.reference.gcn_released import ReleasedGcn
from vesper.mechanism.reference.gcn_truncated import TruncatedGcn
from vesper.mechanism.reference.gin import GinAggregation
from vesper.mechanism.reference.hash_cap import HashCap, SmallestHashes, pair_hash
from vesper.mechanism.reference.linear import LinearAggregation, degrees_of, refuse_long_rows
from vesper.mechanism.reference.mean_clamped import ClampedMean

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """An aggregation as a function of the number of nodes, and its promised minimum degree."""

    name: str
    make: Callable[[int], LinearAggregation]
    promise: int = 0

    def admits(self, graph: Graph) -> bool:
        return bool(degrees_of(graph).min() >= self.promise)

    def move(self, graph: Graph, edge: Edge) -> float:
        operator = self.make(graph.num_nodes).operator
        return float(certified_move(operator(graph) - operator(toggle_edge(graph, edge))))

    def bound(self) -> float:
        return self.make(2).edge_sensitivity()


def score(senders: Ids, receivers: Ids) -> Floats:
    return pair_hash(senders, receivers, salt=5)


def logit(senders: Ids, receivers: Ids) -> Floats:
    return np.where(pair_hash(senders, receivers, salt=9) < 0.5, -1.0, 1.0)


def always(aggregation: LinearAggregation) -> Callable[[int], LinearAggregation]:
    """The same aggregation for every number of nodes."""
    return lambda num_nodes: aggregation


CASES = [
    Case("gin", always(GinAggregation())),
    Case("sum", always(GinAggregation(own_scale=0.0))),
    *(Case(f"gcn {m}", always(GcnAggregation(min_degree=m)), m) for m in (0, 1, 2)),
    *(Case(f"clamped gcn {m}", always(ClampedGcn(min_degree=m))) for m in (1, 2, 3, 5)),
    *(Case(f"truncated {m}", always(TruncatedGcn(min_degree=m))) for m in (1, 2, 3)),
    Case("truncated, long branch", always(TruncatedGcn(min_degree=2, branch_norm=3.0))),
    *(Case(f"clamped mean {m}", always(ClampedMean(min_degree=m))) for m in (1, 2, 3)),
    Case("released gcn", lambda n: ReleasedGcn(np.linspace(-1.5, 2.5, n))),
    Case("bounded attention", always(BoundedAttention(score))),
    Case("softmax attention", always(SoftmaxAttention(logit, logit_bound=1.0))),
    Case("hash cap", lambda n: HashCap(np.full(n, 0.6), salt=1)),
    *(Case(f"{d} smallest", always(SmallestHashes(max_degree=d, salt=2))) for d in (1, 2)),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@every_case
def test_holds_on_all_graphs_up_to_five_nodes(case: Case) -> None:
    for n in range(2, 6):
        found = certify(case.make(n).operator, num_nodes=n, admits=case.admits)
        assert found.pairs > 0 or case.promise >= n - 1
        assert found.move <= case.bound()


@pytest.mark.nightly
@every_case
def test_holds_on_all_graphs_with_six_nodes(case: Case) -> None:
    found = certify(case.make(6).operator, num_nodes=6, admits=case.admits)
    assert found.pairs > 0
    assert found.move <= case.bound()


def circulant(num_nodes: int, reach: int) -> list[Edge]:
    """Every node joined to the next `reach` nodes: all degrees are 2 reach or n - 1."""
    return [(v, (v + k) % num_nodes) for v in range(num_nodes) for k in range(1, reach + 1)]


def families(promise: int) -> list[tuple[str, Graph, Edge]]:
    """Graphs with a special edge, extended to keep the promise."""
    found: list[tuple[str, int, list[Edge], Edge]] = []
    for k in (1, 2, 3, 4, 5, 6, 12, 30):
        leaves = [(0, 2 + i) for i in range(k)]
        others = [(1, 2 + k + i) for i in range(k)]
        shared = [(1, 2 + i) for i in range(k)]
        found += [
            (f"star {k}", k + 2, [(0, 1), *leaves], (0, 1)),
            (f"two joined stars {k}", 2 * k + 2, [(0, 1), *leaves, *others], (0, 1)),
            (f"star and star of two {k}", k + 3, [(0, 1), *leaves, (1, k + 2)], (0, 1)),
            (f"common neighbours {k}", k + 2, [(0, 1), *leaves, *shared], (0, 1)),
            (f"path {k}", k + 2, [(v, v + 1) for v in range(k + 1)], (k // 2, k // 2 + 1)),
        ]
        if k < 13:
            found.append((f"clique {k + 1}", k + 1, list(combinations(range(k + 1), 2)), (0, 1)))
    if promise:  # a few more nodes, all of high degree in both graphs
        found = [
            (name, n + 3, [*edges, *circulant(n + 3, promise + 1)], (0, n // 2 + 2))
            for name, n, edges, _ in found
            if n > 2 * promise + 2
        ]
    return [(name, Graph.from_edges(n, edges), edge) for name, n, edges, edge in found]


@every_case
def test_holds_on_named_families(case: Case) -> None:
    checked = 0
    for name, graph, edge in families(case.promise):
        assert case.admits(graph), name
        assert case.admits(toggle_edge(graph, edge)), name
        assert case.move(graph, edge) <= case.bound(), name
        checked += 1
    assert checked > 20


@every_case
@given(
    st.integers(8, 40),
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=250),
    st.integers(0, 38),
    st.integers(1, 39),
)
def test_holds_on_random_graphs(
    case: Case, num_nodes: int, pairs: list[Edge], first: int, second: int
) -> None:
    assume(first != second and max(first, second) < num_nodes)
    edges = [pair for pair in pairs if max(pair) < num_nodes]
    reach = circulant(num_nodes, case.promise + 1) if case.promise else []
    graph = Graph.from_edges(num_nodes, edges + reach)
    assert case.move(graph, (first, second)) <= case.bound()


@every_case
@given(st.integers(0, 2**32 - 1))
def test_aggregate_is_the_matrix_times_the_messages(case: Case, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 20))
    pairs = rng.integers(0, n, size=(int(rng.integers(0, 40)), 2)).tolist()
    reach = circulant(n, case.promise) if case.promise else []
    graph = Graph.from_edges(n, [(a, b) for a, b in pairs] + reach)
    messages = rng.standard_normal((n, 3))
    messages /= 1 + np.linalg.norm(messages, axis=1, keepdims=True)
    aggregation = case.make(n)
    expected = aggregation.operator(graph)[:, :n] @ messages
    np.testing.assert_allclose(aggregation.aggregate(graph, messages), expected, atol=1e-12)


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.promise], ids=lambda case: case.name
)
def test_a_graph_without_edges_is_fine(case: Case) -> None:
    out = case.make(3).aggregate(Graph.from_edges(3, []), np.zeros((3, 2)))
    assert out.tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize(
    ("messages", "offender"),
    [
        (np.array([[1.0, 0.0], [0.8, 0.7]]), "1 longer .*first 1: 1"),
        (np.array([[np.nan, 0.0], [0.0, 0.0]]), "first 1: 0"),
        (np.array([[np.inf, 0.0], [2.0, 0.0]]), "2 longer .*first 2: 0, 1"),
        (np.zeros((3, 2)), r"each of 2 nodes, got \(3, 2\)"),
        (np.zeros(2), "each of 2 nodes"),
    ],
)
def test_refuses_messages_that_no_bound_covers(messages: Floats, offender: str) -> None:
    with pytest.raises(InputError, match=offender):
        GinAggregation().aggregate(Graph.from_edges(2, [(0, 1)]), messages)


def test_rows_normalised_in_single_precision_are_not_refused() -> None:
    rows = np.random.default_rng(3).standard_normal((1000, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    refuse_long_rows(rows.astype(np.float64), num_nodes=1000)
