"""An engine that loses, repeats or changes blocks: nothing is released."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.engine.engine import Call, InProcessEngine, using
from vesper.errors import VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations import partition
from vesper.mechanism.aggregations.grid import to_grid
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.aggregations.partition import partitioned_rows
from vesper.mechanism.aggregations.row_noise import RowNoise
from vesper.mechanism.door import ClaimedDoor
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release_store import ReleaseStore

NUM_NODES, WIDTH, NUM_BLOCKS = 24, 3, 6
RING = Graph.from_edges(NUM_NODES, [(k, (k + 1) % NUM_NODES) for k in range(NUM_NODES)])
MESSAGES = np.full((NUM_NODES, WIDTH), 0.5, dtype=np.float32)

Results = list[tuple[int, Any]]
Fault = Callable[[Results], Results]


class FaultyEngine(InProcessEngine):
    """Passes the results of all calls through a function."""

    def __init__(self, fault: Fault, *, local: bool) -> None:
        super().__init__(2, local=local)
        self._fault = fault

    def results(self, calls: Iterable[Call]) -> Iterator[tuple[int, Any]]:
        return iter(self._fault(list(super().results(calls))))


@pytest.fixture(autouse=True)
def six_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "ENTRIES_PER_BLOCK", 4 * WIDTH)


def rows_by(fault: Fault, *, local: bool) -> Any:
    noise = NoiseSource.for_simulation(0).span(NUM_NODES * WIDTH)
    row_noise = RowNoise(bits=noise, scale=64.0, steps=64)
    engine = FaultyEngine(fault, local=local)
    return partitioned_rows(engine, NeighborSum(), RING, to_grid(MESSAGES), row_noise)


ANYWHERE: dict[str, tuple[Fault, str]] = {
    "first lost": (lambda results: results[1:], r"1 never arrived \(first 1: 5\)"),
    "last lost": (lambda results: results[:-1], r"1 never arrived \(first 1: 0\)"),
    "all lost": (lambda results: [], r"6 never arrived \(first 3: 0, 1, 2\)"),
    "repeated": (lambda results: [*results, results[2]], "block 3 arrived twice"),
    "instead": (lambda results: [*results[:5], results[0]], "block 5 arrived twice"),
    "unknown": (lambda results: [*results, (NUM_BLOCKS, None)], "block 6 .* never asked for"),
    "negative": (lambda results: [(-1, None), *results], "block -1 .* never asked for"),
}
SENT: dict[str, tuple[Fault, str]] = {
    "empty": (lambda results: [(k, None) for k, _ in results], "5 arrived without its rows"),
    "one row": (lambda results: [(k, rows[:1]) for k, rows in results], "without its rows"),
    "one column": (lambda results: [(k, rows[:, :1]) for k, rows in results], "without its"),
}


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("fault", ANYWHERE)
def test_each_block_arrives_exactly_once_or_nothing_is_released(fault: str, local: bool) -> None:
    changed, message = ANYWHERE[fault]
    with pytest.raises(VesperError, match=f"exactly once, but .*{message}"):
        rows_by(changed, local=local)


@pytest.mark.parametrize("fault", SENT)
def test_a_block_without_its_rows_is_refused(fault: str) -> None:
    changed, message = SENT[fault]
    with pytest.raises(VesperError, match=f"exactly once, but .*{message}"):
        rows_by(changed, local=False)


@pytest.mark.parametrize("local", [False, True])
def test_blocks_may_arrive_in_any_order(local: bool) -> None:
    rows = rows_by(lambda results: results, local=local)
    assert np.array_equal(rows_by(lambda results: results[::-1], local=local), rows)
    assert rows.shape == (NUM_NODES, WIDTH)


def test_nothing_is_stored_when_a_block_is_lost(tmp_path: Path) -> None:
    release_store = ReleaseStore(tmp_path)
    door = ClaimedDoor(RING, noise=NoiseSource.from_os(), release_store=release_store)
    with (
        using(FaultyEngine(lambda results: results[1:], local=False)),
        pytest.raises(VesperError, match="nothing was released"),
    ):
        door.release(MESSAGES, noise_std=1.0)
    assert list(tmp_path.iterdir()) == []
