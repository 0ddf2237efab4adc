"""Properties that each audit target needs of its graph."""

import numpy as np

from vesper.audit.small_graphs import canaries_for, ring, settings_for, two_kinds
from vesper.graph.edges.edge_relation import edges_of
from vesper.graph.edges.pairs import degrees_of
from vesper.graph.labels import nodes_of_label_rows
from vesper.method.registry import find_method
from vesper.session.config import load_config
from vesper.session.run_spec import run_spec_for

PAPER = find_method("paper-gin")


def test_canaries_of_the_ring_are_in_the_requested_split() -> None:
    for split, low, high in (("train", 0, 100), ("val", 100, 140)):
        canaries = ring(split=split, count=20)
        assert np.min(canaries.edges) >= low
        assert np.max(canaries.edges) < high


def test_only_later_roots_have_rare_neighbours() -> None:
    config = load_config(None, {**settings_for("weights", PAPER), "method": PAPER.name})
    canaries = canaries_for("weights", config, count=1)
    schedule = run_spec_for(config, canaries.data, canaries.labels).schedule
    first = schedule.training_batches(0, 0).batch(0)
    assert len(first) == 16
    is_rare = canaries.data.features[:, 0] > 0
    rare = set(np.flatnonzero(is_rare).tolist())
    roots = {a for a, b in edges_of(canaries.data.graph) if b in rare}
    assert roots == set(range(32)) - set(first.tolist())
    root, node = canaries.edges[0][0].tolist()
    assert root in first
    assert node in rare
    assert degrees_of(canaries.data.graph)[node] == 0  # its only edge is the canary


def test_no_root_has_more_neighbours_than_are_sampled() -> None:
    canaries = two_kinds(np.arange(16), max_degree=7)
    assert canaries.largest_degree == 7
    assert len(nodes_of_label_rows(canaries.data, canaries.labels)) == 40


def test_methods_without_sampling_use_their_own_batch_size() -> None:
    assert "batch_size" not in settings_for("rows", find_method("certified"))
    assert settings_for("rows", PAPER)["batch_size"] == 1
