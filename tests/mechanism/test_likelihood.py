"""The likelihood ratio of an edge equals the ratio of the densities of both worlds."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.door import ClaimedDoor, OpenDoor
from vesper.mechanism.likelihood import log_ratios, squared_distances
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.recording_door import RecordedRelease, RecordingDoor
from vesper.mechanism.release import NEIGHBOR_SUM

GRAPH = Graph.from_edges(6, [(0, 1), (1, 2), (2, 3), (0, 4)])
PAIRS = np.array([[0, 1], [2, 3], [0, 5], [3, 4]])
NOISE = 0.7


def messages() -> NDArray[np.float32]:
    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def record(graph: Graph, seed: int = 0, aggregation: Aggregation = NEIGHBOR_SUM) -> RecordedRelease:
    door = RecordingDoor(ClaimedDoor(graph, noise=NoiseSource.for_simulation(seed)))
    door.release(messages(), noise_std=NOISE, aggregation=aggregation)
    return door.releases[0]


AGGREGATIONS: list[Aggregation] = [
    NEIGHBOR_SUM,
    GridAttention(keys=messages(), queries=messages()),
    GridMax(),
    GridGcn(min_degree=1),
]
every = pytest.mark.parametrize("aggregation", AGGREGATIONS, ids=lambda each: str(each.name))


def log_density(release: RecordedRelease, graph: Graph) -> float:
    aggregation = release.aggregation
    means = aggregation.aggregate(graph, release.messages, None) / aggregation.steps
    return float(stats.norm(means, release.noise_std).logpdf(release.released).sum())


@every
def test_it_is_the_ratio_of_the_two_densities(aggregation: Aggregation) -> None:
    release = record(GRAPH, aggregation=aggregation)
    for pair, ratio in zip(PAIRS, log_ratios(release, GRAPH, PAIRS), strict=True):
        edge = (int(pair[0]), int(pair[1]))
        present = edge in [(0, 1), (2, 3)]
        other = toggle_edge(GRAPH, edge)
        with_edge, without = (GRAPH, other) if present else (other, GRAPH)
        expected = log_density(release, with_edge) - log_density(release, without)
        assert ratio == pytest.approx(expected, abs=1e-5)


@every
def test_it_does_not_depend_on_whether_the_graph_has_the_edge(aggregation: Aggregation) -> None:
    release = record(GRAPH, aggregation=aggregation)
    pair = PAIRS[:1]
    other = toggle_edge(GRAPH, (0, 1))
    assert log_ratios(release, GRAPH, pair) == pytest.approx(log_ratios(release, other, pair))
    assert squared_distances(release, GRAPH, pair) == pytest.approx(
        squared_distances(release, other, pair)
    )


@every
def test_the_distance_is_never_more_than_what_is_charged(aggregation: Aggregation) -> None:
    distances = squared_distances(record(GRAPH, aggregation=aggregation), GRAPH, PAIRS)
    assert (distances <= 2 / NOISE**2).all()
    assert distances.max() > 0.2 / NOISE**2


def test_its_mean_is_half_of_the_squared_distance_in_either_direction() -> None:
    other = toggle_edge(GRAPH, (0, 1))
    distances = float(squared_distances(record(GRAPH), GRAPH, PAIRS)[0])
    for graph, sign in ((GRAPH, 1), (other, -1)):
        ratios = [
            float(log_ratios(record(graph, seed), graph, PAIRS[:1])[0]) for seed in range(400)
        ]
        error = 5 * np.sqrt(distances / 400)
        assert np.mean(ratios) == pytest.approx(sign * distances / 2, abs=error)
        assert np.std(ratios) == pytest.approx(np.sqrt(distances), rel=0.2)


def test_without_noise_the_sign_identifies_the_edges() -> None:
    door = RecordingDoor(OpenDoor(GRAPH))
    door.release(messages(), noise_std=0.0)
    assert (log_ratios(door.releases[0], GRAPH, PAIRS) > 0).tolist() == [True, True, False, False]
    assert np.isinf(squared_distances(door.releases[0], GRAPH, PAIRS)).all()


def test_edges_of_zero_messages_cannot_be_detected() -> None:
    door = RecordingDoor(OpenDoor(GRAPH))
    door.release(np.zeros((6, 3), dtype=np.float32), noise_std=0.0)
    assert squared_distances(door.releases[0], GRAPH, PAIRS).tolist() == [0.0] * 4
    assert log_ratios(door.releases[0], GRAPH, PAIRS).tolist() == [0.0] * 4
