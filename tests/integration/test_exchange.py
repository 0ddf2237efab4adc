"""Cheaper exchange: rounded messages and several local updates, through whole runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config
from vesper.session.result import Result
from vesper.simulation.simulate import simulate

NODES = 120
SMALL = {"epochs": 2, "width": 8, "batch_size": 20, "hops": 1, "seed": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, write_folders: Callable[..., Path]) -> Path:
    chance = np.random.default_rng(0)
    classes = np.arange(NODES) // 3 % 2
    features = {f"f{k}": chance.normal(size=NODES) + (classes == k) for k in range(2)}
    return write_folders(
        tmp_path_factory.mktemp("exchange"),
        nodes={"id": range(NODES), **features},
        edges={"src": range(NODES), "dst": [(k + 6) % NODES for k in range(NODES)]},
        labels={
            "id": range(NODES),
            "label": classes,
            "split": [("train", "val", "test")[k % 3] for k in range(NODES)],
        },
    )


def run(folder: Path, out: Path, **settings: Any) -> Result:
    return simulate(folder, load_config(None, {**SMALL, **settings}), out)


def weights(out: Path) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for side in ("data_party", "label_party"):
        with np.load(out / f"{side}.npz") as stored:
            arrays |= {f"{side}/{name}": stored[name] for name in stored.files}
    return arrays


def same(first: Path, second: Path) -> bool:
    one, other = weights(first), weights(second)
    return all(np.array_equal(one[name], other[name]) for name in one)


def charges(out: Path) -> list[float]:
    ledger = Ledger(out / "ledger.sqlite", clock=lambda: 0.0)
    return [entry.cost for entry in ledger.entries() if entry.cost > 0]


@pytest.mark.parametrize(("wire", "local_updates"), [("float16", 1), ("int8", 1), ("int8", 3)])
def test_runs_repeat_bit_for_bit_and_cost_no_more_privacy(
    folder: Path, tmp_path: Path, wire: str, local_updates: int
) -> None:
    usual = run(folder, tmp_path / "usual")
    cheap = run(folder, tmp_path / "cheap", wire=wire, local_updates=local_updates)
    again = run(folder, tmp_path / "again", wire=wire, local_updates=local_updates)
    assert cheap.stages == again.stages
    assert same(tmp_path / "cheap", tmp_path / "again")
    assert not same(tmp_path / "cheap", tmp_path / "usual")
    assert cheap.privacy == usual.privacy
    assert charges(tmp_path / "cheap") == charges(tmp_path / "usual")
    assert cheap.bytes_to_label_party < 0.75 * usual.bytes_to_label_party
    assert cheap.bytes_to_data_party < usual.bytes_to_data_party


def test_the_defaults_are_one_update_and_float32(folder: Path, tmp_path: Path) -> None:
    run(folder, tmp_path / "usual")
    run(folder, tmp_path / "explicit", wire="float32", local_updates=1)
    assert same(tmp_path / "usual", tmp_path / "explicit")


@pytest.mark.parametrize(("name", "value"), [("wire", "int4"), ("local_updates", 0)])
def test_other_settings_are_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=name):
        load_config(None, {name: value})
