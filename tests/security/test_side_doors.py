"""Ways around the guarantee other than a release: each must be closed."""

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.graph.holdings import open_data
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH
from vesper.privacy.ledger.overlap import EMPTY_SLOT, SLOT_DIGITS
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.protocol.codec import decode
from vesper.protocol.messages import DataHello, Embeddings, Message, SessionFinished
from vesper.session.config import load_config
from vesper.simulation import in_process as pair_module
from vesper.simulation.simulate import simulate
from vesper.transport.memory import MemoryChannel, memory_pair

PAIRS = [(k, (k + step) % 60) for k in range(60) for step in (1, 2, 3)]


def write(folder: Path, pairs: list[tuple[int, int]]) -> Path:
    """Write sixty nodes with these edges; folders differ in their edges only."""
    rng = np.random.default_rng(0)
    (folder / "data").mkdir(parents=True)
    (folder / "label").mkdir()
    features = {f"f{k}": rng.normal(size=60) for k in range(3)}
    pq.write_table(pa.table({"id": range(60), **features}), folder / "data" / "nodes.parquet")
    edges = {"src": [a for a, _ in pairs], "dst": [b for _, b in pairs]}
    pq.write_table(pa.table(edges), folder / "data" / "edges.parquet")
    thirds = [k // 3 % 3 for k in range(60)]
    labels = {"id": range(60), "label": thirds, "split": ["train", "val", "test"] * 20}
    pq.write_table(pa.table(labels), folder / "label" / "labels.parquet")
    return folder


class Tap:
    """Records each frame and forwards it."""

    def __init__(self, send: Callable[[bytes], None], frames: list[bytes]) -> None:
        self._send, self._frames = send, frames

    def __call__(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._send(frame)


def crossed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: object
) -> tuple[list[bytes], list[bytes], Path]:
    """Run; return the frames to the label party, those to the data party, and the run folder."""
    to_label: list[bytes] = []
    to_data: list[bytes] = []

    def tapped() -> tuple[MemoryChannel, MemoryChannel]:
        ends = memory_pair()
        for end, frames in zip(ends, (to_label, to_data), strict=True):
            monkeypatch.setattr(end, "send", Tap(end.send, frames))
        return ends

    monkeypatch.setattr(pair_module, "memory_pair", tapped)
    out = folder / "run"
    simulate(folder, load_config(None, {"epochs": 2, "width": 8, "batch_size": 8, **settings}), out)
    return to_label, to_data, out


def without_values(message: Message) -> dict[str, object]:
    """All of a message except the released tensor."""
    facts = {"type": type(message).__name__, **vars(message)}
    if isinstance(message, Embeddings):
        facts["values"] = message.values.shape
    return facts


def test_two_graphs_one_edge_apart_differ_in_released_values_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, _ = crossed(write(tmp_path / "a", PAIRS), monkeypatch)
    second, _, _ = crossed(write(tmp_path / "b", PAIRS[1:]), monkeypatch)
    assert [len(frame) for frame in first] == [len(frame) for frame in second]
    pairs = [(decode(one), decode(other)) for one, other in zip(first, second, strict=True)]
    assert all(without_values(one) == without_values(other) for one, other in pairs)
    tensors = [(a, b) for a, b in pairs if isinstance(a, Embeddings) and isinstance(b, Embeddings)]
    assert any(not np.array_equal(a.values, b.values) for a, b in tensors)


def test_without_a_release_nothing_differs_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, _ = crossed(write(tmp_path / "a", PAIRS), monkeypatch, method="mlp")
    second, _, _ = crossed(write(tmp_path / "b", PAIRS[1:]), monkeypatch, method="mlp")
    assert first == second


def test_only_messages_of_the_protocol_cross_and_nothing_of_the_ledger_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "a", PAIRS)
    to_label, _, out = crossed(folder, monkeypatch)
    assert {type(decode(frame)) for frame in to_label} == {DataHello, Embeddings, SessionFinished}
    ledger = Ledger(out / "ledger.sqlite", clock=lambda: 0.0)
    key, entries = key_of(ledger), list(ledger.entries())
    (version,) = (entry.facts for entry in entries if entry.facts["kind"] == "version")
    edges = fingerprint(open_data(folder / "data").graph, key=key)
    assert version["edges"] == edges
    for frame in to_label:
        assert key not in frame
        assert SIMULATED_GRAPH.encode() not in frame
        slots = [version["sketch"][k : k + SLOT_DIGITS] for k in range(0, 2048, SLOT_DIGITS)]
        (pair, *_) = (a + b for a, b in pairwise(slots) if EMPTY_SLOT not in (a, b))
        for digest in (edges, version["ids"], pair):
            assert digest.encode() not in frame
            assert bytes.fromhex(digest) not in frame


def test_the_ledger_has_the_planned_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, out = crossed(write(tmp_path / "a", PAIRS), monkeypatch, hops=3)
    entries = list(Ledger(out / "ledger.sqlite", clock=lambda: 0.0).entries())
    assert sum(entry.cost > 0 for entry in entries) == 4  # the probe, and three hops


def test_delta_does_not_depend_on_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = write(tmp_path / "a", PAIRS[:2]), write(tmp_path / "b", PAIRS)
    config = load_config(None, {"epochs": 1, "width": 8})
    facts = [simulate(folder, config, folder / "run").privacy for folder in (few, many)]
    assert facts[0] == facts[1]


def test_nodes_without_edges_are_not_dropped(tmp_path: Path) -> None:
    assert open_data(write(tmp_path / "a", []) / "data").graph.num_nodes == 60


def test_a_noise_source_cannot_be_saved_or_copied() -> None:
    source = NoiseSource.from_os()
    with pytest.raises(TypeError):
        pickle.dumps(source)
    with pytest.raises(TypeError):
        copy.deepcopy(source)
    with pytest.raises(TypeError):
        copy.copy(source)
