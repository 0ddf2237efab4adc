"""Several data parties in one process: claim SEVERAL, and what joint training gains."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.door import FloatRows, OpenDoor
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.session.config import load_config
from vesper.session.data_parties import SimulatedParty
from vesper.session.run_spec import run_spec_for
from vesper.simulation import in_process as pair_module
from vesper.simulation.in_process import InProcessDataParty, TrainedSession, train_all_parties
from vesper.simulation.simulate import simulate
from vesper.transport.memory import MemoryChannel, memory_pair

NODES = 60
NAMES = ("platform", "bank-transfers")
PAIRS = {
    "platform": [(k, (k + 3) % NODES) for k in range(NODES)],
    "bank-transfers": [(k, (k + 6) % NODES) for k in range(NODES)],
}
SETTINGS = {"epochs": 2, "width": 8, "batch_size": 8, "hops": 2}

Frames = dict[str, list[bytes]]


def write(root: Path, **changed: list[tuple[int, int]]) -> Path:
    """Folders of both data parties, and labels; edges may be changed."""
    rng = np.random.default_rng(0)
    for name in NAMES:
        (root / name).mkdir(parents=True)
        pairs = changed.get(name.replace("-", "_"), PAIRS[name])
        nodes = {"id": range(NODES), "x": rng.normal(size=NODES), "y": rng.normal(size=NODES)}
        pq.write_table(pa.table(nodes), root / name / "nodes.parquet")
        edges = {"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]}
        pq.write_table(pa.table(edges), root / name / "edges.parquet")
    (root / "label").mkdir()
    split = [("train", "val", "test")[k // 2 % 3] for k in range(NODES)]
    labels = {"id": range(NODES), "label": [k % 3 for k in range(NODES)], "split": split}
    pq.write_table(pa.table(labels), root / "label" / "labels.parquet")
    return root


class ReplayingDoor(OpenDoor):
    """Records its releases, or repeats recorded ones whatever its graph is."""

    def __init__(self, graph: Graph, notes: list[FloatRows], *, is_again: bool) -> None:
        super().__init__(graph)
        self._notes, self._is_again, self._number = notes, is_again, 0

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        if not self._is_again:
            self._notes.append(super().release(messages, noise_std=0.0, aggregation=aggregation))
        self._number += 1
        return self._notes[self._number - 1].copy()


def run(
    folder: Path,
    released: dict[str, list[FloatRows]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_again: bool = False,
) -> tuple[TrainedSession, list[bytes]]:
    """Train together; return every frame that was sent, in the order of each channel."""
    channels: list[list[bytes]] = []

    def tapped() -> tuple[MemoryChannel, MemoryChannel]:
        ends = memory_pair()
        for end in ends:
            frames: list[bytes] = []
            channels.append(frames)
            monkeypatch.setattr(end, "send", _recording(end.send, frames))
        return ends

    monkeypatch.setattr(pair_module, "memory_pair", tapped)
    labels = open_labels(folder / "label")
    config = load_config(None, {**SETTINGS, "epsilon": float("inf")})
    data_parties = []
    for name in NAMES:
        data = open_data(folder / name)
        door = ReplayingDoor(data.graph, released.setdefault(name, []), is_again=is_again)
        data_parties.append(
            InProcessDataParty(run_spec_for(config, data, labels), data, door, name)
        )
    trained = train_all_parties(data_parties, labels)
    return trained, [frame for frames in channels for frame in frames]


def _recording(send: Callable[[bytes], None], frames: list[bytes]) -> Callable[[bytes], None]:
    def record(frame: bytes) -> None:
        frames.append(frame)
        send(frame)

    return record


@pytest.mark.parametrize("whose", NAMES)
def test_an_edge_changes_nothing_but_what_its_own_party_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    released: dict[str, list[FloatRows]] = {}
    _, frames = run(write(tmp_path / "a"), released, monkeypatch)
    other = write(tmp_path / "b", **{whose.replace("-", "_"): PAIRS[whose][1:]})
    _, again = run(other, released, monkeypatch, is_again=True)
    assert frames == again  # nothing that is sent depends on the edge except through its release
    elsewhere: dict[str, list[FloatRows]] = {}
    _, different = run(other, elsewhere, monkeypatch)
    assert frames != different  # the release does depend on it
    first = {name: rows[0] for name, rows in released.items()}
    changed = [name for name in NAMES if not np.array_equal(first[name], elsewhere[name][0])]
    assert changed == [whose]


def test_two_parties_together_predict_better_than_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    nodes, root = 600, tmp_path / "parties"
    labels = rng.integers(0, 4, nodes)
    for name, bit in (("one", labels % 2), ("two", labels // 2)):
        (root / name).mkdir(parents=True)
        table = {"id": range(nodes), "x": bit + 0.3 * rng.normal(size=nodes)}
        pq.write_table(pa.table(table), root / name / "nodes.parquet")
        pairs = rng.integers(0, nodes, (900, 2))
        edges = {"src": pairs[:, 0], "dst": pairs[:, 1]}
        pq.write_table(pa.table(edges), root / name / "edges.parquet")
    (root / "label").mkdir()
    split = rng.choice(["train", "val", "test"], nodes)
    table = {"id": range(nodes), "label": labels, "split": split}
    pq.write_table(pa.table(table), root / "label" / "labels.parquet")
    one, two = SimulatedParty(name="one"), SimulatedParty(name="two")
    config = load_config(None, {"epochs": 20, "width": 16, "epsilon": 1.0})
    alone = simulate(root, config, tmp_path / "alone", parties=(one,)).test
    both = simulate(root, config, tmp_path / "both", parties=(one, two)).test
    assert alone < 60 < 80 < both


def test_budgets_ledgers_and_models_of_each(tmp_path: Path) -> None:
    root = write(tmp_path / "parties")
    parties = (
        SimulatedParty(name="platform", epsilon=1.0),
        SimulatedParty(name="bank-transfers", own=True, epsilon=3.0, delta=1e-7),
    )
    config = load_config(None, {**SETTINGS, "label_epsilon": 2.0})
    result = simulate(root, config, tmp_path / "run", parties=parties)
    facts = {each.name: each for each in result.parties}
    assert facts["platform"].privacy.certified_epsilon == 1.0
    assert (facts["bank-transfers"].own, facts["bank-transfers"].privacy.delta) == (True, 1e-7)
    assert result.privacy == facts["bank-transfers"].privacy  # of the least protected
    noise = [each.privacy.noise_std for each in result.parties]
    assert noise[0] is not None
    assert noise[1] is not None
    assert noise[0] > 1.4 * noise[1]
    files = {path.name for path in (tmp_path / "run").iterdir()}
    for name in NAMES:
        assert {f"ledger-{name}.sqlite", f"data_party-{name}.npz"} <= files
    assert "label-ledger.sqlite" in files


def test_noise_of_two_parties_is_not_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write(tmp_path / "parties", bank_transfers=PAIRS["platform"])
    pq.write_table(
        pq.read_table(root / "platform" / "nodes.parquet"),
        root / "bank-transfers" / "nodes.parquet",
    )
    parties = tuple(SimulatedParty(name=name) for name in NAMES)
    simulate(root, load_config(None, SETTINGS), tmp_path / "run", parties=parties)
    first, second = (np.load(tmp_path / "run" / f"data_party-{name}.npz") for name in NAMES)
    assert any(not np.array_equal(first[key], second[key]) for key in first.files)


def test_parties_of_different_stages_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path / "parties")
    labels = pq.read_table(root / "label" / "labels.parquet")
    binary = labels.set_column(1, "label", pa.array([k % 2 for k in range(NODES)]))
    pq.write_table(binary, root / "label" / "labels.parquet")
    parties = (
        SimulatedParty(name="platform", epsilon=1.0),
        SimulatedParty(name="bank-transfers", epsilon=16.0),
    )
    with pytest.raises(InputError, match="platform in 2, bank-transfers in 3; set hops"):
        simulate(root, load_config(None, {}), tmp_path / "run", parties=parties)
    assert not (tmp_path / "run").exists()


def test_the_root_cause_is_raised_and_not_its_consequences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(OpenDoor):
        def release(self, *_: object, **__: object) -> FloatRows:
            raise ZeroDivisionError("in the second data party")

    folder = write(tmp_path / "a")
    labels = open_labels(folder / "label")
    config = load_config(None, {**SETTINGS, "epsilon": float("inf")})
    data_parties = []
    for name, door in zip(NAMES, (OpenDoor, Broken), strict=True):
        data = open_data(folder / name)
        data_parties.append(
            InProcessDataParty(run_spec_for(config, data, labels), data, door(data.graph), name)
        )
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(train_all_parties, data_parties, labels)
        with pytest.raises(ZeroDivisionError, match="in the second"):
            training.result(timeout=120)
