"""Canary nodes with all their edges, in runs that protect nodes and in runs that do not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.audit.audit import AuditResult, verdict_of
from vesper.audit.canaries import place_nodes
from vesper.audit.command import run_audit
from vesper.audit.small_graphs import stars
from vesper.audit.trial import draw_nodes
from vesper.errors import InputError
from vesper.graph.edges.pairs import degrees_of

NODE = {"method": "certified", "epsilon": 4.0, "privacy_unit": "node", "max_degree": 8, "hops": 1}
STARS = stars(count=4, max_degree=3)


def run(trials: int, given: dict[str, Any], **options: Any) -> AuditResult:
    return run_audit(given, trials=trials, **options)


def test_a_canary_node_is_present_with_all_its_edges_or_none() -> None:
    coins = np.array([True, False, False, True])
    degrees = degrees_of(STARS.graph(coins))
    assert degrees[np.array([0, 4, 8, 12])].tolist() == [3, 0, 0, 3]
    assert degrees.sum() == 2 * 3 * 2
    assert STARS.shares_in(STARS.graph(coins)).tolist() == [1, 0, 0, 1]
    assert degrees_of(STARS.data.graph).sum() == 0


def test_rows_of_a_canary_are_those_of_the_node_and_its_neighbours() -> None:
    numbers = np.arange(STARS.data.graph.num_nodes, dtype=float)
    assert STARS.sum_over_nodes(numbers).tolist() == [0 + 1 + 2 + 3, 22, 38, 54]
    assert STARS.first().sum_over_nodes(numbers).tolist() == [numbers.sum()]
    assert STARS.endpoint_rows(numbers[:, None]).tolist() == [[0, 6], [4, 18], [8, 30], [12, 42]]


def test_nodes_that_share_a_neighbour_are_refused_as_canaries() -> None:
    whole = STARS.holdings(np.ones(4, dtype=bool))
    with pytest.raises(InputError, match="share no node"):
        place_nodes(whole, STARS.labels, np.array([0, 1]))
    with pytest.raises(InputError, match="at least one edge"):
        place_nodes(whole, STARS.labels, np.array([whole.graph.num_nodes - 1]))


def test_chosen_nodes_have_the_most_neighbours_and_share_none() -> None:
    whole = STARS.holdings(np.array([True, True, False, True]))
    drawn = draw_nodes(whole, STARS.labels, split="train", count=9, seed=0)
    assert sorted(drawn.tolist()) == [0, 4, 12]
    assert len(draw_nodes(whole, STARS.labels, split="train", count=2, seed=0)) == 2
    with pytest.raises(InputError, match="canary edges with --unit edge"):
        draw_nodes(whole, STARS.labels, split="val", count=1, seed=0)


def test_the_bound_for_one_release_is_within_a_factor_of_two_of_epsilon() -> None:
    result = run(16, {**NODE, "seed": 3})
    assert (result.unit, result.protects, result.certified_epsilon) == ("node", "node", 4.0)
    assert result.statistic == "exact likelihood ratio of the releases"
    assert 2.0 < result.epsilon_lower_bound < 4.0
    assert result.verdict == "not refuted"
    assert result.best_possible_epsilon is not None
    assert 3.5 < result.best_possible_epsilon < 4.0


def test_two_releases_stay_below_epsilon_too() -> None:
    result = run(5, {**NODE, "hops": 2})
    assert 0.3 < result.epsilon_lower_bound < 4.0
    assert result.verdict == "not refuted"


def test_a_run_without_noise_is_detected() -> None:
    result = run(4, {**NODE, "epsilon": float("inf")}, claim=4.0)
    assert (result.plan, result.unit, result.verdict) == ("none", "node", "refuted")
    assert result.epsilon_lower_bound > 8


def test_the_sensitivity_that_the_paper_states_for_nodes_is_refuted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The paper says that the node's own row changes by 1; unclipped it changes by max_degree."""
    monkeypatch.setattr(
        "vesper.mechanism.aggregations.row_noise.clip_on_grid", lambda values, *, row_norm: None
    )
    monkeypatch.setattr(
        "vesper.mechanism.likelihood.clip_on_grid", lambda values, *, row_norm: None
    )
    result = run(4, NODE)
    assert result.verdict == "refuted"
    assert result.certified_epsilon == 4.0


def test_edge_privacy_does_not_cover_nodes() -> None:
    result = run(4, {"method": "certified", "epsilon": 4.0, "hops": 1}, unit="node")
    assert (result.unit, result.protects) == ("node", "edge")
    assert result.epsilon_lower_bound > 8 > 4.0 == result.certified_epsilon
    assert result.verdict == "not covered"
    assert result.best_possible_epsilon is not None
    assert result.best_possible_epsilon > result.epsilon_lower_bound


def test_node_privacy_covers_edges() -> None:
    result = run(4, {**NODE, "max_degree": 20}, unit="edge")
    assert (result.unit, result.protects, result.verdict) == ("edge", "node", "not refuted")
    assert result.best_possible_epsilon is not None
    assert result.best_possible_epsilon < 4.0 / 2


def test_canary_nodes_of_party_folders(tmp_path: Path, write_folders: Callable[..., Path]) -> None:
    ids = np.arange(60)
    write_folders(
        tmp_path,
        nodes={"id": ids, "f0": np.sin(ids)},
        edges={"src": np.repeat(ids[::6], 5), "dst": np.delete(ids, ids[::6])},
        labels={"id": ids, "label": ids // 6 % 2, "split": ["train", "val", "train"] * 20},
    )
    settings = {**NODE, "epochs": 1, "width": 4}
    result = run(4, settings, data=tmp_path, canaries=6)
    assert (result.canaries, result.unit, result.verdict) == (6, "node", "not refuted")
    assert result.best_possible_epsilon is not None
    assert result.best_possible_epsilon > 1


def test_verdicts_and_refusals() -> None:
    assert verdict_of(5.0, None, 4.0, is_covered=False) == "not covered"
    assert verdict_of(3.0, None, 4.0, is_covered=False) == "not refuted"
    assert verdict_of(3.0, None, None, is_covered=False) == "nothing promised"
    with pytest.raises(InputError, match="--unit: expected edge or node, got 'graph'"):
        run(4, NODE, unit="graph")
    with pytest.raises(InputError, match="expected rows for canary nodes"):
        run(4, NODE, target="weights")
