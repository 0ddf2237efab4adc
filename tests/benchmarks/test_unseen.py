"""Graphs have the properties in their names, and the table summarizes the result lines."""

import numpy as np
import pytest
from benchmarks.fresh_graphs import HELD_OUT_KINDS
from benchmarks.later_graphs import DEVELOPMENT_KINDS, sums
from benchmarks.unseen import ALL, Result, measure_fit, table
from benchmarks.unseen_graphs import KINDS, draw_graph


@pytest.mark.parametrize("name", ALL)
def test_a_graph_is_valid_and_drawn_reproducibly(name: str) -> None:
    one, again = draw_graph(ALL[name], share=0.2), draw_graph(ALL[name], share=0.2)
    num_nodes = len(one.labels)
    assert (one.edges == again.edges).all()
    assert (one.features == again.features).all()
    assert one.features.shape[0] == num_nodes
    assert one.edges.min() >= 0
    assert one.edges.max() < num_nodes
    assert (one.edges[:, 0] != one.edges[:, 1]).all()
    assert not set(one.train) & set(one.test)
    assert len(np.unique(one.labels)) >= 2


def test_neighbours_have_the_class_in_the_name() -> None:
    for name, shift in (("neighbours alike", 0), ("neighbours of the next class", 1)):
        graph = draw_graph(KINDS[name])
        sender, receiver = graph.labels[graph.edges].T
        assert 0.8 < ((sender + shift) % 4 == receiver).mean() < 0.9  # 0.8 + 0.2 / 4


def test_fields_show_the_number_of_mines_around_them() -> None:
    board = draw_graph(KINDS["mines on a board"])
    around = np.zeros(len(board.labels))
    for one, other in board.edges:
        around[one] += board.labels[other]
        around[other] += board.labels[one]
    shown = board.features[:, -1] == 0
    assert 0.4 < shown.mean() < 0.6
    assert (board.features[shown, :9].argmax(axis=1) == around[shown]).all()
    assert not board.features[~shown, :9].any()


def test_a_label_is_the_majority_of_a_feature_of_neighbours() -> None:
    graph = draw_graph(KINDS["features of neighbours"])
    votes = np.zeros(len(graph.labels))
    for one, other in graph.edges:
        votes[one] += 2 * graph.features[other, 0] - 1
        votes[other] += 2 * graph.features[one, 0] - 1
    # Loops were removed afterwards: they may have decided a tie.
    assert ((votes > 0) == graph.labels).mean() > 0.99


def test_a_label_is_the_most_frequent_of_four_features_of_neighbours() -> None:
    graph = draw_graph(DEVELOPMENT_KINDS["features vote for four classes"])
    votes = np.column_stack([sums(graph.edges, graph.features[:, k]) for k in range(4)])
    assert (votes.argmax(axis=1) == graph.labels).mean() > 0.99  # except for loops


def test_nodes_with_two_flagged_neighbours_are_at_risk() -> None:
    graph = draw_graph(HELD_OUT_KINDS["two flags of forty"])
    flagged = np.maximum(graph.features[:, 5], graph.features[:, 30])
    assert ((sums(graph.edges, flagged) >= 2) == graph.labels).mean() > 0.99  # except for loops


def test_people_who_share_a_device_have_the_same_class() -> None:
    graph = draw_graph(HELD_OUT_KINDS["people who share devices"])
    people, device = graph.edges.T
    assert (graph.labels[device] == 2).all()
    share = np.bincount(device, graph.labels[people]) / np.maximum(np.bincount(device), 1)
    assert np.isin(share, (0.0, 1.0)).all()


def test_customers_of_bad_shops_are_at_risk() -> None:
    graph = draw_graph(DEVELOPMENT_KINDS["shops and customers"])
    is_shop, bad = graph.features[:, -1] == 1, graph.labels.astype(float)
    harmed = sums(graph.edges, bad * is_shop) > 0
    assert (harmed == (graph.labels == 1))[~is_shop].all()


def test_a_fit_returns_a_result_line() -> None:
    line = measure_fit("small", draw_graph(KINDS["200 nodes"]), "mlp", float("inf"), 0)
    assert (line.graph, line.method, line.epsilon, line.metric) == (
        "small",
        "mlp",
        "inf",
        "accuracy",
    )
    assert 0 <= line.test <= 100


def test_the_table_has_means_deviations_and_the_leader_in_bold() -> None:
    lines = [
        Result("g", method, "4", seed, "accuracy", test + seed, "c")
        for method, test in (("certified", 80.0), ("gap", 70.0), ("progap", 81.0))
        for seed in (0, 2)
    ]
    _, _, row = table(lines, ["g", "not measured"])
    assert row == (
        "| g | accuracy | - | - | - | 81.0 ± 1.4 | - | - | 71.0 ± 1.4 | - | - | **82.0 ± 1.4** | - "
        "| - |"
    )
