"""One cluster on this machine for all tests of the file: it takes seconds to start."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from vesper.engine.engine import Call, Engine, using
from vesper.engine.ray_engine import MAX_RETRIES, RayEngine
from vesper.errors import InputError, VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations import partition
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.door import ChargedDoor, open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release_store import ReleaseStore
from vesper.model.edge_free_inference import edge_free_logits_of_all
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.model.pre import PrivateRepresentationExtractor
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger

NUM_NODES, WIDTH = 500, 3


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    if find_spec("ray") is None:  # not imported here: the token must be set first
        pytest.skip("needs the package ray: pip install 'vesper[ray]'")
    before = signal.getsignal(signal.SIGTERM)
    with RayEngine(num_workers=2) as started:
        assert signal.getsignal(signal.SIGTERM) is before  # Ray must not replace it
        yield started


class KillingEngine:
    """An engine that kills workers inside certain calls, the first time these are made.

    Args:
        engine: makes the calls.
        marks: folder with one file per call that counts how often it was made.
        kills: numbers of the calls that kill their worker.
    """

    def __init__(self, engine: RayEngine, marks: Path, kills: set[int]) -> None:
        self._engine, self._marks, self._kills = engine, marks, kills
        self.num_workers = engine.num_workers
        self.is_local, self.share = engine.is_local, engine.share

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        def with_mark(number: int, call: Call) -> Call:
            mark, kills = self._marks / str(number), number in self._kills
            function = call.function

            def run_or_die(*arguments: Any) -> Any:  # sent by value: workers have no tests
                result = function(*arguments)  # the worker dies after the noise is drawn
                is_repeat = mark.exists()
                with mark.open("a") as file:
                    file.write("x")
                if kills and not is_repeat:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return replace(call, function=run_or_die)

        return self._engine.results(with_mark(number, call) for number, call in enumerate(calls))


def some_graph() -> Graph:
    pairs = np.random.default_rng(0).integers(0, NUM_NODES, (4000, 2)).tolist()
    return Graph.from_edges(NUM_NODES, pairs)


def some_messages(seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((NUM_NODES, WIDTH))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(0.99 * rows / lengths, dtype=np.float32)


def opened_door(
    ledger: Path, noise: NoiseSource, release_store: ReleaseStore | None = None
) -> ChargedDoor:
    """Open an account for the graph, and a door behind it."""
    graph = some_graph()
    account = open_graph_account(
        graph,
        "g",
        ledger=Ledger(ledger, clock=lambda: 0.0),
        budget=Budget(epsilon=8.0, delta=1e-6),
        simulated=not noise.is_private,
    )
    return ChargedDoor(graph, account=account, noise=noise, run="run", release_store=release_store)


def released(
    folder: Path, engine: Engine | None, *, noise: NoiseSource | None = None
) -> tuple[list[NDArray[np.float32]], ChargedDoor]:
    """Two releases of one run, with its ledger and its release store."""
    folder.mkdir()
    noise = noise or NoiseSource.for_simulation(5)
    door = opened_door(folder / "ledger.sqlite", noise, ReleaseStore(folder / "releases"))
    if engine is None:
        return [door.release(some_messages(seed), noise_std=3.0) for seed in (1, 2)], door
    with using(engine):
        return [door.release(some_messages(seed), noise_std=3.0) for seed in (1, 2)], door


@pytest.fixture
def many_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Make releases consist of many blocks; return how many."""
    monkeypatch.setattr(partition, "ENTRIES_PER_BLOCK", 60 * WIDTH)
    cuts = partition.cuts_of(some_graph(), 2)
    return sum(-(-(b - a) // 60) for a, b in pairwise(cuts))


def test_releases_equal_those_of_one_process(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    expected, _ = released(tmp_path / "here", None)
    got, door = released(tmp_path / "ray", engine)
    assert np.array_equal(got, expected)
    assert door.account.releases == 2


def test_releases_of_other_aggregations_equal_those_of_one_process(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    keys, queries = some_messages(3), some_messages(4)
    each: list[Aggregation] = [GridAttention(keys=keys, queries=queries), GridGcn(min_degree=3)]
    for aggregation in each:
        here, there = (
            opened_door(
                tmp_path / f"{side} {aggregation.name}.sqlite", NoiseSource.for_simulation(5)
            )
            for side in ("here", "there")
        )
        expected = here.release(some_messages(1), noise_std=3.0, aggregation=aggregation)
        with using(engine):
            got = there.release(some_messages(1), noise_std=3.0, aggregation=aggregation)
        assert np.array_equal(got, expected)


def test_killing_a_worker_in_a_release_changes_nothing_and_costs_nothing(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    expected, _ = released(tmp_path / "here", None)
    marks = tmp_path / "marks"
    marks.mkdir()
    got, door = released(tmp_path / "ray", KillingEngine(engine, marks, {0, many_blocks - 1}))
    counts = [(marks / str(number)).read_text() for number in range(many_blocks)]
    assert counts[0] == counts[-1] == "xxx"  # killed, repeated; then the second release
    assert np.array_equal(got, expected)
    assert door.account.releases == 2  # one charge per release, even if workers die
    assert len(list((tmp_path / "ray" / "releases").iterdir())) == 2


def test_noise_from_the_system_is_the_same_when_a_call_is_repeated(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    class RepeatingEngine:
        """Records the results of all calls and makes them again, with a worker killed."""

        num_workers, is_local, share = engine.num_workers, engine.is_local, engine.share

        def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
            listed = list(calls)
            first = dict(engine.results(listed))
            again = dict(KillingEngine(engine, marks, {1}).results(listed))
            assert all(np.array_equal(first[k], again[k]) for k in range(many_blocks))
            results_seen.append(first)
            return iter(first.items())

    marks, results_seen = tmp_path / "marks", list[dict[int, Any]]()
    marks.mkdir()
    (one, two), _ = released(tmp_path / "ray", RepeatingEngine(), noise=NoiseSource.from_os())
    assert len(results_seen) == 2
    assert not np.array_equal(one, two)


def test_the_edge_free_pass_equals_that_of_one_process(engine: RayEngine, tmp_path: Path) -> None:
    features = np.random.default_rng(0).standard_normal((700, 5), dtype=np.float32)
    np.save(tmp_path / "features.npy", features)
    inputs = Inputs(np.load(tmp_path / "features.npy", mmap_mode="r"), FeatureScaling(features))
    extractor = PrivateRepresentationExtractor(
        [nn.Linear(inputs.width, 8) for _ in range(2)],
        encoding_width=8,
        num_classes=3,
        message_width=4,
        hops=1,
        dropout=0.5,
        seed=2,
    ).eval()
    logits = edge_free_logits_of_all(engine, extractor, inputs)
    with torch.no_grad():
        expected = extractor.edge_free_logits(inputs.rows(np.arange(700))).mean(dim=2)
    assert torch.allclose(logits, expected, atol=1e-6)


@pytest.mark.nightly  # a worker is started four times
def test_a_call_that_always_kills_its_worker_is_given_up_with_an_error(engine: RayEngine) -> None:
    with pytest.raises(VesperError, match=f"given up after {MAX_RETRIES} repeats"):
        list(engine.results([Call(0, os._exit, (1,))]))


def test_an_error_at_a_worker_is_raised_in_this_process(engine: RayEngine) -> None:
    with pytest.raises(FileNotFoundError, match="no/such/file"):
        list(engine.results([Call(0, os.stat, ("no/such/file",))]))


def test_results_have_the_numbers_of_their_calls(engine: RayEngine) -> None:
    shared = engine.share(np.arange(5))
    calls = [Call(k % 2, np.multiply, (shared, k)) for k in range(9)]
    results = dict(engine.results(calls))
    assert {k: int(result.sum()) for k, result in results.items()} == {k: 10 * k for k in range(9)}


def test_workers_on_this_machine_are_local_and_have_one_thread(engine: RayEngine) -> None:
    from numba import get_num_threads

    assert [engine.is_local(worker) for worker in range(2)] == [True, True]
    calls = [Call(1, get_num_threads, ()), Call(1, torch.get_num_threads, ())]
    assert dict(engine.results(calls)) == {0: 1, 1: 1}


@pytest.mark.nightly  # Ray retries for twenty seconds
def test_clients_without_the_token_are_refused(engine: RayEngine) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    environment = {name: value for name, value in os.environ.items() if "RAY_" not in name}
    program = f"import ray; ray.init(address='{address}', logging_level='ERROR'); print('inside')"
    client = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "inside" not in client.stdout
    assert "Authentication" in client.stderr


def test_a_second_engine_is_refused_while_one_is_open(engine: RayEngine) -> None:
    with pytest.raises(InputError, match="already connected to Ray"):
        RayEngine()


@pytest.mark.parametrize(
    ("address", "num_workers", "words"),
    [("ray://head:10001", None, "expected host:port"), (None, 0, "expected at least 1")],
)
def test_bad_options_are_refused(address: str | None, num_workers: int | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        RayEngine(address=address, num_workers=num_workers)


def test_a_missing_ray_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'vesper\[ray\]'"):
        RayEngine()
