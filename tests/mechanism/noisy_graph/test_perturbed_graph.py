import math
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.noisy_graph.lapgraph import LapGraph
from vesper.mechanism.noisy_graph.node_pairs import cells_of
from vesper.mechanism.noisy_graph.perturbed_graph import release_graph
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.store import Ledger


@pytest.mark.parametrize("mechanism", [EdgeRand(epsilon=9.0), LapGraph(epsilon=9.0)])
def test_most_edges_stay_when_epsilon_is_large(mechanism: EdgeRand | LapGraph) -> None:
    ring = Graph.from_edges(400, [(k, (k + 1) % 400) for k in range(400)])
    noisy = mechanism.perturb(ring, NoiseSource.for_simulation(1))
    num_true = len(np.intersect1d(cells_of(ring), cells_of(noisy)))
    assert num_true > 370
    assert abs(noisy.num_edges - 400) < 60
    again = mechanism.perturb(ring, NoiseSource.for_simulation(1))
    assert np.array_equal(again.neighbors, noisy.neighbors)


@pytest.mark.parametrize("mechanism", [EdgeRand(epsilon=1.0), LapGraph(epsilon=1.0)])
@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_tiny_and_empty_graphs(mechanism: EdgeRand | LapGraph, num_nodes: int) -> None:
    noisy = mechanism.perturb(Graph.from_edges(num_nodes, []), NoiseSource.for_simulation(0))
    assert noisy.num_nodes == num_nodes
    assert noisy.num_edges <= num_nodes * (num_nodes - 1) // 2


@pytest.mark.parametrize("mechanism", [EdgeRand, LapGraph])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 101.0, math.inf, math.nan])
def test_an_epsilon_out_of_range_is_refused(
    mechanism: type[EdgeRand] | type[LapGraph], epsilon: float
) -> None:
    with pytest.raises(InputError, match=r"expected between 0\.05 and 100"):
        mechanism(epsilon=epsilon)


def test_a_receipt_of_another_event_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    graph = Graph.from_edges(4, [(0, 1)])
    account = open_account(ledger, "g", num_nodes=4, budget=Budget(epsilon=4.0, delta=1e-6))
    receipt = account.charge(EdgeRand(epsilon=1.0).event, None, run="r")
    noise = NoiseSource.for_simulation(0)
    with pytest.raises(BudgetError):
        release_graph(graph, EdgeRand(epsilon=3.0), receipt=receipt, account="g", noise=noise)
    release_graph(graph, EdgeRand(epsilon=1.0), receipt=receipt, account="g", noise=noise)
    with pytest.raises(BudgetError):
        release_graph(graph, EdgeRand(epsilon=1.0), receipt=receipt, account="g", noise=noise)
