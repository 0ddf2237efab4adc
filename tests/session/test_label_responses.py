"""Protected labels, end to end: what crosses is a function of the responses only."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError
from vesper.graph.holdings import open_data
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.method.settings import Config
from vesper.model.objective_factory import LabelResponses
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config
from vesper.session.doors import open_door
from vesper.session.label_responses import (
    charge_label_responses,
    label_table_fingerprint,
    make_label_responses,
    simulate_label_responses,
)
from vesper.session.run_spec import run_spec_for
from vesper.simulation import in_process as pair_module
from vesper.simulation.simulate import simulate
from vesper.transport.channel import MAX_FRAME_BYTES
from vesper.transport.memory import MemoryChannel, memory_pair

NODES, CLASSES = 240, 3


@pytest.fixture
def folder(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    random = np.random.default_rng(1)
    labels = random.integers(0, CLASSES, NODES)
    columns = {f"x{k}": random.normal(size=NODES) + (labels == k) for k in range(CLASSES)}
    pairs = random.integers(0, NODES, (900, 2))
    split = [("train", "train", "val", "test")[k % 4] for k in range(NODES)]
    return write_folders(
        tmp_path,
        nodes={"id": range(NODES), **columns},
        edges={"src": pairs[:, 0], "dst": pairs[:, 1]},
        labels={"id": range(NODES), "label": labels, "split": split},
    )


def settings(**changes: object) -> Config:
    given = {"epochs": 3, "width": 8, "seed": 2, "label_epsilon": 1.0}
    return load_config(None, {**given, **changes})


class RecordingChannel:
    """A channel that records the frames sent into it."""

    def __init__(self, inner: MemoryChannel) -> None:
        self._inner = inner
        self.frames: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.frames.append(bytes(frame))
        self._inner.send(frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        return self._inner.receive(limit)

    def close(self) -> None:
        self._inner.close()


def frames_of_the_label_party(
    folder: Path, labels: LabelHoldings, responses: LabelResponses, monkeypatch: pytest.MonkeyPatch
) -> list[bytes]:
    config, data = settings(), open_data(folder / "data")
    ends = memory_pair()
    written = RecordingChannel(ends[1])
    monkeypatch.setattr(pair_module, "memory_pair", lambda: (ends[0], written))
    run_spec = run_spec_for(config, data, labels)
    with closing(Ledger(folder / f"{len(list(folder.iterdir()))}.sqlite", clock=float)) as ledger:
        noise = NoiseSource.for_simulation(0)
        door, run_spec = open_door(run_spec, data.graph, ledger, noise, name="graph", run="r")
        pair_module.train(run_spec, data, labels, door, responses=responses)
    return written.frames


def test_frames_depend_on_labels_only_through_responses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = open_labels(folder / "label")
    responded = np.concatenate([labels.rows("train"), labels.rows("val")])
    responses = LabelResponses(np.arange(len(responded)) % CLASSES, 1.0)
    changed = labels.labels.copy()
    changed[responded] = (
        changed[responded] + 1
    ) % CLASSES  # every one, where the claim is about one
    other = replace(labels, labels=changed)
    first = frames_of_the_label_party(folder, labels, responses, monkeypatch)
    assert first == frames_of_the_label_party(folder, other, responses, monkeypatch)
    # the test can fail: responses do cross
    seen = responses.noisy_labels.copy()
    seen[0] = (seen[0] + 1) % CLASSES
    assert first != frames_of_the_label_party(
        folder, labels, LabelResponses(seen, 1.0), monkeypatch
    )


def test_frames_do_not_depend_on_the_order_of_the_table(
    folder: Path, write_folders: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = open_labels(folder / "label")
    responses = LabelResponses(
        np.arange(len(labels.rows("train")) + len(labels.rows("val"))) % 3, 1.0
    )
    first = frames_of_the_label_party(folder, labels, responses, monkeypatch)
    table = pq.read_table(folder / "label" / "labels.parquet")
    by_label = table.sort_by([("label", "ascending"), ("id", "descending")])
    pq.write_table(by_label, folder / "label" / "labels.parquet")
    again = open_labels(folder / "label")
    assert first == frames_of_the_label_party(folder, again, responses, monkeypatch)


def test_only_responses_decide_whether_a_run_begins(folder: Path, tmp_path: Path) -> None:
    labels = open_labels(folder / "label")
    two = replace(labels, classes=(0, 1), labels=labels.labels % 2)
    rows = two.rows("val")
    equal = two.labels.copy()
    equal[rows] = 0
    other = replace(two, labels=equal)
    noise, path = NoiseSource.from_os(), tmp_path / "ledger.sqlite"
    assert charge_label_responses(settings(), other, path=path, noise=noise) is not None
    with pytest.raises(InputError, match="at least two different labels"):
        run_spec_for(settings(label_epsilon=None), open_data(folder / "data"), other)


def test_a_simulated_run_charges_the_label_ledger(folder: Path, tmp_path: Path) -> None:
    result = simulate(folder, settings(), tmp_path / "run")
    assert result.privacy.label_epsilon == 1.0
    with closing(open_to_read(tmp_path / "run" / "label-ledger.sqlite")) as ledger:
        (balance,) = accounts(ledger)
    assert balance.spent_epsilon() == 1.0
    open_run = simulate(folder, settings(label_epsilon=None), tmp_path / "open")
    assert open_run.privacy.label_epsilon is None
    assert not (tmp_path / "open" / "label-ledger.sqlite").exists()


def test_a_later_run_is_not_charged(folder: Path, tmp_path: Path) -> None:
    labels, path = open_labels(folder / "label"), tmp_path / "label.sqlite"
    first, second = (
        charge_label_responses(settings(seed=seed), labels, path=path, noise=NoiseSource.from_os())
        for seed in (0, 1)
    )
    assert first is not None
    assert second is not None
    assert np.array_equal(first.noisy_labels, second.noisy_labels)
    with closing(open_to_read(path)) as ledger:
        assert sum(entry.cost > 0 for entry in ledger.entries()) == 1


def test_a_label_that_has_changed_is_reported_and_nothing_else(
    folder: Path, tmp_path: Path
) -> None:
    labels = open_labels(folder / "label")
    changed = labels.labels.copy()
    rows = np.concatenate([labels.rows(split)[:2] for split in ("train", "val", "test")])
    changed[rows] = (changed[rows] + 1) % CLASSES
    stale_counts: list[int] = []
    with closing(Ledger(tmp_path / "label.sqlite", clock=float)) as ledger:
        first, second = (
            make_label_responses(
                settings(),
                each,
                ledger=ledger,
                noise=NoiseSource.from_os(),
                stale=stale_counts.append,
            )
            for each in (labels, replace(labels, labels=changed))
        )
    assert first is not None
    assert second is not None
    assert np.array_equal(first.noisy_labels, second.noisy_labels)
    assert stale_counts == [4]  # labels of test nodes get no responses


def test_secret_and_simulated_responses_are_not_mixed(folder: Path, tmp_path: Path) -> None:
    labels, path = open_labels(folder / "label"), tmp_path / "label.sqlite"
    simulate_label_responses(settings(), labels, path=path)
    with pytest.raises(InputError, match="simulated in this ledger so far"):
        charge_label_responses(settings(), labels, path=path, noise=NoiseSource.from_os())


def test_the_table_fingerprint_covers_ids_splits_and_classes_but_no_label(folder: Path) -> None:
    labels, key = open_labels(folder / "label"), b"k" * 32
    name = label_table_fingerprint(labels, key=key)
    assert label_table_fingerprint(replace(labels, labels=labels.labels[::-1]), key=key) == name
    assert label_table_fingerprint(labels, key=b"l" * 32) != name
    others = [
        replace(labels, ids=Ids(labels.ids.values.slice(1)), splits=labels.splits[1:]),
        replace(labels, splits=np.roll(labels.splits, 1)),
        replace(labels, classes=(0, 1, 3)),
        replace(labels, classes=(0, 1, 2, 3)),
    ]
    names = {label_table_fingerprint(other, key=key) for other in others}
    assert len(names) == len(others)
    assert name not in names


def test_a_session_without_responses_is_refused(folder: Path) -> None:
    config, data, labels = settings(), open_data(folder / "data"), open_labels(folder / "label")
    run_spec = run_spec_for(config, data, labels)
    with closing(Ledger(folder / "l.sqlite", clock=float)) as ledger:
        noise = NoiseSource.for_simulation(0)
        door, run_spec = open_door(run_spec, data.graph, ledger, noise, name="graph", run="r")
        with pytest.raises(ValueError, match="expected responses"):
            pair_module.train(run_spec, data, labels, door)


def test_unsupported_settings_are_refused_before_a_charge(folder: Path, tmp_path: Path) -> None:
    labels, path = open_labels(folder / "label"), tmp_path / "label.sqlite"
    config = settings(class_weights="balanced")
    with pytest.raises(InputError, match="class_weights"):
        charge_label_responses(config, labels, path=path, noise=NoiseSource.from_os())
    with closing(open_to_read(path)) as ledger:
        assert not any(entry.graph for entry in ledger.entries())
