"""Errata 5, 6, 12: GCN in sampled subgraphs, what truncation really guarantees, 0 / 0.

The counterexamples to the sensitivities themselves are in tests/mechanism/reference: test_gcn (5),
test_gcn_truncated (6), test_vfgnn_bound (13), test_node_relation (14).
"""

import dataclasses
import math

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler
from vesper.mechanism.reference.gcn import GcnAggregation, eta
from vesper.mechanism.reference.gcn_truncated import TruncatedGcn
from vesper.mechanism.reference.linear import degrees_of, normalize_rows
from vesper.privacy.accounting import theorem_1
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.planning.paper_plan import PAPER_DATASETS

FINANCE = PAPER_DATASETS[2]


def test_5_sampling_breaks_the_minimum_degree() -> None:
    clique = Graph.from_edges(8, [(a, b) for a in range(8) for b in range(a)])
    GcnAggregation(min_degree=7).operator(clique)
    batch = Sampler(clique, num_layers=1, max_degree=3, seed=0).sample(np.array([0, 1]), step=0)
    block = batch.layers[0]
    receivers = np.repeat(np.arange(block.num_receivers), block.degrees)
    sampled = Graph.from_edges(
        len(batch.nodes), zip(receivers.tolist(), block.indices.tolist(), strict=True)
    )
    assert degrees_of(sampled).min() == 1
    with pytest.raises(InputError, match="min_degree"):
        GcnAggregation(min_degree=7).operator(sampled)


def test_5_theorem_1_counts_two_roots_where_gcn_touches_forty() -> None:
    # test_gcn.py::test_refuted_only_two_embeddings_change moves the forty rows.
    assert theorem_1.max_roots_touched(max_degree=20, num_layers=1) == 2


@pytest.mark.parametrize(("claimed", "expected"), [(1.0, 9.5), (4.0, 42.4), (8.0, 92.0)])
def test_6_what_truncation_guarantees_on_finance(claimed: float, expected: float) -> None:
    """Two layers, m = 5: layer-1 rows of two endpoints that fall below m, once per epoch each."""
    training = dataclasses.replace(FINANCE.training(num_layers=2), edge_sensitivity=eta(5))
    budget = Budget(epsilon=claimed, delta=FINANCE.delta)
    noise_std = theorem_1.noise_std_for(training=training, budget=budget)
    move = TruncatedGcn(min_degree=5).edge_sensitivity()
    mu = math.sqrt(FINANCE.num_epochs) * move / noise_std
    assert epsilon_of(mu=mu, delta=FINANCE.delta) == pytest.approx(expected, rel=5e-3)


def test_12_algorithm_2_as_printed_adds_noise_to_the_untruncated_value() -> None:
    # It computes the branch value h-hat and then perturbs h-tilde, the plain GCN row of a node
    # below the minimum degree: one edge moves that by sqrt 2, not by eta(5) = 0.396.
    pair = Graph.from_edges(2, [(0, 1)])
    messages = np.array([[1.0], [-1.0]])
    plain = GcnAggregation(min_degree=0)
    rows = [plain.aggregate(each, messages) for each in (pair, toggle_edge(pair, (0, 1)))]
    move = float(np.linalg.norm(rows[0] - rows[1]))
    assert move == pytest.approx(math.sqrt(2))
    assert move > 3.5 * TruncatedGcn(min_degree=5).claimed_edge_sensitivity()
    # Perturbing the branch value instead, these two rows do not move at all.
    truncated = TruncatedGcn(min_degree=5)
    branch = [
        truncated.aggregate_with(each, messages, messages)
        for each in (pair, toggle_edge(pair, (0, 1)))
    ]
    assert np.array_equal(branch[0], branch[1])


def test_12_normalising_a_row_that_relu_emptied() -> None:
    rows = np.maximum(np.array([[-0.3, -1.2], [3.0, 4.0]]), 0.0)
    with np.errstate(invalid="ignore"):
        printed = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.isnan(printed[0]).all()
    assert normalize_rows(rows).tolist() == [[0.0, 0.0], [0.6, 0.8]]
