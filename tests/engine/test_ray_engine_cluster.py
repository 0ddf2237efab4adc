"""A simulated cluster of two machines: workers of the second see no files of the first."""

import os
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest

from vesper.engine.engine import using
from vesper.engine.ray_engine import RayEngine
from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.graph.sampling.sampler import Sampler
from vesper.mechanism.door import ClaimedDoor
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.sampled.shared_draw import draw_for

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if find_spec("ray") is None:
        pytest.skip("needs the package ray: pip install 'vesper[ray]'")
    os.environ.setdefault("RAY_AUTH_MODE", "token")  # else Ray stores a token in the home folder
    os.environ.setdefault("RAY_AUTH_TOKEN", "0" * 64)
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


@pytest.fixture(scope="module")
def engine(address: str) -> Iterator[RayEngine]:
    with RayEngine(address=address) as started:
        yield started


def some_graph() -> Graph:
    pairs = np.random.default_rng(0).integers(0, 400, (3000, 2)).tolist()
    return Graph.from_edges(400, pairs)


def test_one_worker_is_local_and_one_is_remote(engine: RayEngine) -> None:
    assert [engine.is_local(worker) for worker in range(engine.num_workers)] == [True, False]


def test_releases_and_samples_equal_those_of_one_process(engine: RayEngine) -> None:
    graph = some_graph()
    messages = np.full((400, 3), 0.5, dtype=np.float32)
    here = ClaimedDoor(graph, noise=NoiseSource.for_simulation(0)).release(messages, noise_std=2.0)
    roots = np.array([3, 399, 200])
    sampled = Sampler(graph, num_layers=2, max_degree=4, seed=1).sample(roots, step=5)
    with using(engine):
        door = ClaimedDoor(graph, noise=NoiseSource.for_simulation(0))
        assert np.array_equal(door.release(messages, noise_std=2.0), here)
        draw = draw_for(graph, max_degree=4)
        assert draw is not None
        shared = Sampler(graph, num_layers=2, max_degree=4, seed=1, draw=draw)
        assert np.array_equal(shared.sample(roots, step=5).nodes, sampled.nodes)


def test_more_workers_than_cores_are_refused(engine: RayEngine, address: str) -> None:
    engine.close()
    with pytest.raises(InputError, match="expected at most 2, one per core, got 3"):
        RayEngine(address=address, num_workers=3)
