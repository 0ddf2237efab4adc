from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.engine.array_rows import MappedRows
from vesper.engine.engine import InProcessEngine, using
from vesper.engine.shared_output import OutputSlice, SharedOutput
from vesper.errors import BudgetError, InputError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations import partition
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.grid import to_grid
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.aggregations.neighbor_sum import NeighborSum
from vesper.mechanism.aggregations.partition import cuts_of, partitioned_rows
from vesper.mechanism.aggregations.row_noise import RowNoise
from vesper.mechanism.door import ChargedDoor, ClaimedDoor, Door, open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release import PROVED_AGGREGATIONS
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger
from vesper.privacy.relation import EdgeRelation, NodeRelation

NUM_NODES, WIDTH = 203, 5


def some_graph(seed: int = 0) -> Graph:
    """A random graph with a hub, and isolated nodes at both ends."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(3, NUM_NODES - 3, (700, 2)).tolist()
    return Graph.from_edges(NUM_NODES, [*pairs, *((10, other) for other in range(20, 150))])


def some_messages() -> NDArray[np.float32]:
    rows = np.random.default_rng(1).standard_normal((NUM_NODES, WIDTH))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(0.99 * rows / lengths, dtype=np.float32)


def mapped(graph: Graph, folder: Path) -> Graph:
    """The same graph, mapped from files as for an opened folder."""
    np.save(folder / "indptr.npy", graph.indptr)
    np.save(folder / "neighbors.npy", graph.neighbors)
    return Graph(
        np.load(folder / "indptr.npy", mmap_mode="r"),
        np.load(folder / "neighbors.npy", mmap_mode="r"),
    )


def charged(tmp_path: Path, name: str, graph: Graph, relation: Any) -> ChargedDoor:
    ledger = Ledger(tmp_path / f"{name}.sqlite", clock=lambda: 0.0)
    budget = Budget(epsilon=50.0, delta=1e-6)
    noise = NoiseSource.for_simulation(3)
    account = open_graph_account(
        graph, name, ledger=ledger, budget=budget, relation=relation, simulated=True
    )
    return ChargedDoor(graph, account=account, noise=noise, run="test")


def three_releases(door: Door) -> NDArray[np.float32]:
    messages = some_messages()
    widths = (WIDTH, 1, 3)  # after an odd number of entries, a release starts at half a count
    return np.concatenate(
        [door.release(messages[:, :width], noise_std=30.0) for width in widths], axis=1
    )


@pytest.mark.parametrize("num_workers", [1, 3, 4, 400])
@pytest.mark.parametrize("rows_per_block", [1, 16, 1000])
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(
    "relation", [EdgeRelation(), NodeRelation(max_degree=150, row_norm=9.0)], ids=["edge", "node"]
)
def test_releases_are_those_of_one_process_bit_for_bit(
    num_workers: int,
    rows_per_block: int,
    local: bool,
    relation: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition, "ENTRIES_PER_BLOCK", rows_per_block * WIDTH)
    graph, engine = some_graph(), InProcessEngine(num_workers, local=local)
    door, other = (charged(tmp_path, name, graph, relation) for name in ("one", "many"))
    expected = three_releases(door)
    with using(engine):
        partitioned = three_releases(other)
    assert np.array_equal(partitioned, expected)
    assert all(call.worker < num_workers for call in engine.calls_made)
    assert len(engine.calls_made) >= 3 * min(num_workers, NUM_NODES // 2)
    assert other.account.releases == door.account.releases == 3


def every_aggregation() -> dict[str, Aggregation]:
    keys, queries = some_messages(), np.roll(some_messages(), 7, axis=0)
    each: list[Aggregation] = [
        NeighborSum(),
        GridMax(),
        GridAttention(keys=keys, queries=queries),
        GridGcn(min_degree=3),
    ]
    return {aggregation.name: aggregation for aggregation in each}


@pytest.mark.parametrize("name", every_aggregation())
@pytest.mark.parametrize("num_workers", [1, 3])
def test_every_aggregation_is_the_same_as_in_one_process(
    name: str, num_workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "ENTRIES_PER_BLOCK", 16 * WIDTH)
    aggregation, engine = every_aggregation()[name], InProcessEngine(num_workers)
    here, there = (
        charged(tmp_path, side, some_graph(), EdgeRelation()) for side in ("here", "there")
    )
    expected = here.release(some_messages(), noise_std=30.0, aggregation=aggregation)
    with using(engine):
        partitioned = there.release(some_messages(), noise_std=30.0, aggregation=aggregation)
    assert np.array_equal(partitioned, expected)
    assert sum(len(call.arguments[4]) for call in engine.calls_made) == NUM_NODES
    values = aggregation.aggregate(some_graph(), to_grid(some_messages()), None)
    assert len(np.unique(values)) > 3  # rows differ, so a wrong receiver would be detected


def test_all_proved_aggregations_are_covered() -> None:
    assert {type(each) for each in every_aggregation().values()} == set(PROVED_AGGREGATIONS)


def test_local_workers_read_the_files_and_remote_ones_receive_their_rows(tmp_path: Path) -> None:
    graph = mapped(some_graph(), tmp_path)
    expected = three_releases(ClaimedDoor(graph, noise=NoiseSource.for_simulation(0)))
    for local in (True, False):
        engine = InProcessEngine(3, local=local)
        with using(engine):
            door = ClaimedDoor(graph, noise=NoiseSource.for_simulation(0))
            assert np.array_equal(three_releases(door), expected)
        shard_neighbors = [call.arguments[1] for call in engine.calls_made]
        assert all(isinstance(each, MappedRows) == local for each in shard_neighbors)


def test_remote_workers_receive_only_their_own_rows() -> None:
    graph, engine = some_graph(), InProcessEngine(4)
    with using(engine):
        ClaimedDoor(graph, noise=NoiseSource.for_simulation(0)).release(
            some_messages(), noise_std=5.0
        )
    sizes = {call.worker: len(call.arguments[1]) for call in engine.calls_made}
    assert sum(sizes.values()) == len(graph.neighbors)
    assert max(sizes.values()) <= len(graph.neighbors) / 4 + 150


def test_each_row_has_its_own_bits_and_no_source_is_sent() -> None:
    graph, engine = some_graph(), InProcessEngine(4)
    noise = NoiseSource.from_os()
    with using(engine):
        for _ in range(2):
            ClaimedDoor(graph, noise=noise).release(some_messages(), noise_std=5.0)
    spans = [call.arguments[3].bits for call in engine.calls_made]
    assert len({span.key for span in spans}) == 2  # one per release
    assert {(span.start, span.count) for span in spans} == {(0, NUM_NODES * WIDTH)}
    rows = [
        row
        for call in engine.calls_made[: len(engine.calls_made) // 2]
        for row in call.arguments[4]
    ]
    assert sorted(rows) == list(range(NUM_NODES))


def test_local_workers_return_nothing_and_write_finished_rows_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows must be noisy before anyone except their worker can see them."""
    outputs: list[NDArray[np.float32]] = []

    class Watched(SharedOutput):
        def slice_for(self, *arguments: Any) -> OutputSlice | None:
            outputs.append(self.rows)
            return super().slice_for(*arguments)

    def finish(self: RowNoise, values: NDArray[np.int32], *, first_row: int) -> Any:
        assert not outputs[0][first_row : first_row + len(values)].any()
        return np.full(values.shape, 7.0, dtype=np.float32)

    monkeypatch.setattr(partition, "SharedOutput", Watched)
    monkeypatch.setattr(RowNoise, "finish_rows", finish)
    engine = InProcessEngine(3, local=True)
    with using(engine):
        released = ClaimedDoor(some_graph(), noise=NoiseSource.from_os()).release(
            some_messages(), noise_std=5.0
        )
    assert (released == 7.0).all()
    assert all(call.arguments[5] is not None for call in engine.calls_made)


def test_an_engine_sums_nothing_that_was_not_charged(tmp_path: Path) -> None:
    engine = InProcessEngine(2)
    ledger = Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)
    account = open_graph_account(
        some_graph(),
        "payments",
        ledger=ledger,
        budget=Budget(epsilon=0.5, delta=1e-6),
        simulated=False,
    )
    door = ChargedDoor(some_graph(), account=account, noise=NoiseSource.from_os(), run="test")
    with using(engine):
        with pytest.raises(BudgetError):
            door.release(some_messages(), noise_std=1.0)
        with pytest.raises(InputError):
            door.release(2 * some_messages(), noise_std=1000.0)
    assert engine.calls_made == []


def test_a_repeated_call_returns_the_same_block() -> None:
    engine = InProcessEngine(3)
    with using(engine):
        ClaimedDoor(some_graph(), noise=NoiseSource.from_os()).release(
            some_messages(), noise_std=5.0
        )
    for call in engine.calls_made:
        once, again = (call.function(*call.arguments) for _ in range(2))
        assert np.array_equal(once, again)


@pytest.mark.parametrize("parts", [1, 2, 7, 500])
def test_cuts_balance_the_work(parts: int) -> None:
    graph = some_graph()
    cuts = np.array(cuts_of(graph, parts))
    assert cuts[0] == 0
    assert cuts[-1] == NUM_NODES
    assert len(cuts) == parts + 1
    work = np.diff(graph.indptr[cuts] + partition.ROW_COST * cuts)
    largest_row = int(np.diff(graph.indptr).max()) + partition.ROW_COST
    assert work.min() >= 0
    assert work.max() <= work.sum() / parts + largest_row


def test_messages_of_width_0_are_partitioned_too() -> None:
    messages = np.empty((NUM_NODES, 0), dtype=np.int8)
    row_noise = RowNoise(bits=NoiseSource.for_simulation(0).span(0), scale=64.0, steps=64)
    rows = partitioned_rows(InProcessEngine(2), NeighborSum(), some_graph(), messages, row_noise)
    assert rows.shape == (NUM_NODES, 0)


def test_a_graph_without_edges_is_noise() -> None:
    graph = Graph.from_edges(4, [])
    messages = to_grid(np.zeros((4, 2), dtype=np.float32))
    row_noise = RowNoise(bits=NoiseSource.for_simulation(0).span(8), scale=64.0, steps=64)
    engine = InProcessEngine(2)
    noise = np.zeros((4, 2), dtype=np.int32)
    NoiseSource.for_simulation(0).add_gaussian_to(noise, scale=64.0)
    released = partitioned_rows(engine, NeighborSum(), graph, messages, row_noise)
    assert np.array_equal(released, noise / 64)
