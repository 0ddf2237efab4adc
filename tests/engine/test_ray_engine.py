"""One cluster on this machine for all tests of the file: it takes seconds to start."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
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
from vesper.mechanism.door import ChargedDoor
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
    if find_spec("ray") is None:  # not imported here: a token must be asked for before
        pytest.skip("needs the package ray: pip install 'vesper[ray]'")
    before = signal.getsignal(signal.SIGTERM)
    with RayEngine(num_workers=2) as made:
        assert signal.getsignal(signal.SIGTERM) is before  # how a run ends is not for Ray to say
        yield made


class Deadly:
    """An engine whose workers are killed inside a call, the first time it is made.

    Args:
        engine: to make the calls.
        marks: where it is noted which calls were begun, and how often.
        kills: numbers of calls that end their worker.
    """

    def __init__(self, engine: RayEngine, marks: Path, kills: set[int]) -> None:
        self._engine, self._marks, self._kills = engine, marks, kills
        self.num_workers = engine.num_workers
        self.is_local, self.share = engine.is_local, engine.share

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        def noted(number: int, call: Call) -> Call:
            mark, is_last = self._marks / str(number), number not in self._kills
            function = call.function

            def made_or_killed(*arguments: Any) -> Any:  # sent by value: workers have no tests
                result = function(*arguments)  # the noise is drawn: then it dies
                begun = mark.exists()
                with mark.open("a") as file:
                    file.write("x")
                if not (begun or is_last):
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return replace(call, function=made_or_killed)

        return self._engine.results(noted(number, call) for number, call in enumerate(calls))


def some_graph() -> Graph:
    pairs = np.random.default_rng(0).integers(0, NUM_NODES, (4000, 2)).tolist()
    return Graph.from_edges(NUM_NODES, pairs)


def some_messages(seed: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((NUM_NODES, WIDTH))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(0.99 * rows / lengths, dtype=np.float32)


def released(
    folder: Path, engine: Engine | None, *, noise: NoiseSource | None = None
) -> tuple[list[NDArray[np.float32]], ChargedDoor]:
    """Two releases of one run, with its ledger and its vault."""
    folder.mkdir()
    door = ChargedDoor(
        some_graph(),
        ledger=Ledger(folder / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=8.0, delta=1e-6),
        noise=noise or NoiseSource.for_simulation(5),
        run="run",
        release_store=ReleaseStore(folder / "releases"),
    )
    if engine is None:
        return [door.release(some_messages(seed), noise_std=3.0) for seed in (1, 2)], door
    with using(engine):
        return [door.release(some_messages(seed), noise_std=3.0) for seed in (1, 2)], door


@pytest.fixture
def many_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Blocks of a release."""
    monkeypatch.setattr(partition, "ENTRIES_PER_BLOCK", 60 * WIDTH)
    cuts = partition.cuts_of(some_graph(), 2)
    return sum(-(-(b - a) // 60) for a, b in zip(cuts, cuts[1:], strict=False))


def test_releases_equal_those_of_one_process(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    expected, _ = released(tmp_path / "here", None)
    got, door = released(tmp_path / "ray", engine)
    assert np.array_equal(got, expected)
    assert door.account.releases == 2


def test_so_do_those_of_other_aggregations(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    keys, queries = some_messages(3), some_messages(4)
    each: list[Aggregation] = [GridAttention(keys=keys, queries=queries), GridGcn(min_degree=3)]
    for aggregation in each:
        here, there = (
            ChargedDoor(
                some_graph(),
                ledger=Ledger(tmp_path / f"{side} {aggregation.name}.sqlite", clock=lambda: 0.0),
                budget=Budget(epsilon=8.0, delta=1e-6),
                noise=NoiseSource.for_simulation(5),
                run="run",
            )
            for side in ("here", "there")
        )
        expected = here.release(some_messages(1), noise_std=3.0, aggregation=aggregation)
        with using(engine):
            got = there.release(some_messages(1), noise_std=3.0, aggregation=aggregation)
        assert np.array_equal(got, expected)


def test_a_worker_killed_in_a_release_changes_nothing_and_costs_nothing(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    expected, _ = released(tmp_path / "here", None)
    marks = tmp_path / "marks"
    marks.mkdir()
    got, door = released(tmp_path / "ray", Deadly(engine, marks, {0, many_blocks - 1}))
    made = [(marks / str(number)).read_text() for number in range(many_blocks)]
    assert made[0] == made[-1] == "xxx"  # killed, repeated; and once in the second release
    assert np.array_equal(got, expected)
    assert door.account.releases == 2  # one charge a release, whoever dies
    assert len(list((tmp_path / "ray" / "releases").iterdir())) == 2


def test_with_noise_from_the_system_what_a_dead_worker_drew_is_drawn_again_the_same(
    engine: RayEngine, tmp_path: Path, many_blocks: int
) -> None:
    class Recorded:
        """Keeps what each call gave; asks for all of it once more, after a death."""

        num_workers, is_local, share = engine.num_workers, engine.is_local, engine.share

        def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
            listed = list(calls)
            first = dict(engine.results(listed))
            again = dict(Deadly(engine, marks, {1}).results(listed))
            assert all(np.array_equal(first[k], again[k]) for k in range(many_blocks))
            seen.append(first)
            return iter(first.items())

    marks, seen = tmp_path / "marks", list[dict[int, Any]]()
    marks.mkdir()
    (one, two), _ = released(tmp_path / "ray", Recorded(), noise=NoiseSource.from_os())
    assert len(seen) == 2
    assert not np.array_equal(one, two)


def test_the_edge_free_pass_gives_what_one_process_gives(engine: RayEngine, tmp_path: Path) -> None:
    drawn = np.random.default_rng(0).standard_normal((700, 5), dtype=np.float32)
    np.save(tmp_path / "features.npy", drawn)
    inputs = Inputs(np.load(tmp_path / "features.npy", mmap_mode="r"), FeatureScaling(drawn))
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
def test_what_dies_every_time_is_given_up_in_words(engine: RayEngine) -> None:
    with pytest.raises(VesperError, match=f"given up after {MAX_RETRIES} repeats"):
        list(engine.results([Call(0, os._exit, (1,))]))


def test_an_error_at_a_worker_is_raised_here(engine: RayEngine) -> None:
    with pytest.raises(FileNotFoundError, match="no/such/file"):
        list(engine.results([Call(0, os.stat, ("no/such/file",))]))


def test_results_have_the_numbers_of_their_calls(engine: RayEngine) -> None:
    shared = engine.share(np.arange(5))
    calls = [Call(k % 2, np.multiply, (shared, k)) for k in range(9)]
    results = dict(engine.results(calls))
    assert {k: int(result.sum()) for k, result in results.items()} == {k: 10 * k for k in range(9)}


def test_workers_of_this_machine_are_near_and_have_one_thread(engine: RayEngine) -> None:
    from numba import get_num_threads

    assert [engine.is_local(worker) for worker in range(2)] == [True, True]
    asked = [Call(1, get_num_threads, ()), Call(1, torch.get_num_threads, ())]
    assert dict(engine.results(asked)) == {0: 1, 1: 1}


@pytest.mark.nightly  # Ray knocks for twenty seconds
def test_strangers_are_refused(engine: RayEngine) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    stranger = {name: value for name, value in os.environ.items() if "RAY_" not in name}
    program = f"import ray; ray.init(address='{address}', logging_level='ERROR'); print('inside')"
    came = subprocess.run(
        [sys.executable, "-c", program],
        env={**stranger, "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "inside" not in came.stdout
    assert "Authentication" in came.stderr


def test_a_second_engine_is_refused_while_one_is_open(engine: RayEngine) -> None:
    with pytest.raises(InputError, match="connected to Ray already"):
        RayEngine()


@pytest.mark.parametrize(
    ("address", "num_workers", "words"),
    [("ray://head:10001", None, "expected host:port"), (None, 0, "expected at least 1")],
)
def test_what_cannot_be_is_refused(
    address: str | None, num_workers: int | None, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        RayEngine(address=address, num_workers=num_workers)


def test_where_ray_is_missing_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'vesper\[ray\]'"):
        RayEngine()
