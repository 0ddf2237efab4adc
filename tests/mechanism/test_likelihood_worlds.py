"""The ratio of two worlds equals the ratio of both densities, for clipped sums too."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.aggregations.row_noise import clip_on_grid
from vesper.mechanism.door import ChargedDoor, OpenDoor, open_graph_account
from vesper.mechanism.likelihood import log_ratios, squared_distances, world_ratios
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.recording_door import RecordedRelease, RecordingDoor
from vesper.mechanism.reference.node_relation import isolate
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger
from vesper.privacy.relation import EdgeRelation, GraphRelation, NodeRelation

D = 4
STAR = Graph.from_edges(8, [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (5, 6), (4, 6)])
ISOLATED = isolate(STAR, 0)
RELATIONS = {
    "edge": EdgeRelation(),
    "node": NodeRelation(max_degree=D, row_norm=math.sqrt(D)),
    "node, short rows": NodeRelation(max_degree=D, row_norm=1.0),
}


def messages() -> NDArray[np.float32]:
    rows = np.random.default_rng(0).normal(size=(8, 3)) + 4.0  # similar rows, so that sums are long
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(unit, dtype=np.float32)


Record = Callable[..., RecordedRelease]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Record a release of a charged door, so that rows are clipped as in a run."""

    def release(graph: Graph, relation: GraphRelation, *, seed: int = 0) -> RecordedRelease:
        ledger = Ledger(tmp_path / f"{relation}-{seed}.sqlite", clock=lambda: 0.0)
        account = open_graph_account(
            graph,
            "star",
            ledger=ledger,
            budget=Budget(epsilon=50.0, delta=1e-6),
            relation=relation,
            simulated=True,
        )
        door = ChargedDoor(
            graph, account=account, noise=NoiseSource.for_simulation(seed), run="test"
        )
        recording = RecordingDoor(door)
        recording.release(messages(), noise_std=1.5)
        ledger.close()
        return recording.releases[0]

    return release


def log_density(release: RecordedRelease, graph: Graph) -> float:
    values = NeighborSum().aggregate(graph, release.messages, None)
    if release.row_norm is not None:
        clip_on_grid(values, row_norm=release.row_norm)
    return float(stats.norm(values / STEPS, release.noise_std).logpdf(release.released).sum())


@pytest.mark.parametrize("name", RELATIONS)
def test_it_is_the_ratio_of_the_two_densities(record: Record, name: str) -> None:
    release = record(STAR, RELATIONS[name])
    assert (release.row_norm is None) == (name == "edge")
    ratios = world_ratios(release, STAR, ISOLATED)
    expected = log_density(release, STAR) - log_density(release, ISOLATED)
    assert ratios.log_ratios.sum() == pytest.approx(expected, abs=1e-5)
    moved = np.flatnonzero(ratios.mu_squared)
    assert set(moved.tolist()) <= {0, 1, 2, 3, 4}, "only rows of the node and its neighbours"


def test_clipping_limits_the_distance(record: Record) -> None:
    """A star's centre moves by its degree without clipping, by row_norm with it."""
    squared_moves = {
        name: float(world_ratios(record(STAR, each), STAR, ISOLATED).mu_squared[0]) * 1.5**2
        for name, each in RELATIONS.items()
    }
    assert squared_moves["edge"] > 12  # nearly 4^2
    assert squared_moves["node"] == pytest.approx(D, rel=0.05)
    assert squared_moves["node, short rows"] == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize("name", RELATIONS)
def test_for_one_edge_it_equals_the_ratio_of_the_pair(record: Record, name: str) -> None:
    release, pair = record(STAR, RELATIONS[name]), np.array([[0, 4]])
    ratios = world_ratios(release, STAR, toggle_edge(STAR, (0, 4)))
    assert log_ratios(release, STAR, pair)[0] == pytest.approx(ratios.log_ratios.sum())
    assert squared_distances(release, STAR, pair)[0] == pytest.approx(ratios.mu_squared.sum())


def test_without_noise_the_sign_identifies_the_world() -> None:
    for graph, sign in ((STAR, 1.0), (ISOLATED, -1.0)):
        door = RecordingDoor(OpenDoor(graph))
        door.release(messages(), noise_std=0.0)
        ratios = world_ratios(door.releases[0], STAR, ISOLATED)
        assert np.sign(ratios.log_ratios.sum()) == sign
        assert np.isinf(ratios.mu_squared[:5]).all()
        assert ratios.mu_squared[5:].tolist() == [0.0] * 3
