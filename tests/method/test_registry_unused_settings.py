"""Settings that are not read change nothing, and those that are read change something."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.files import read_arrays
from vesper.method.registry import CERTIFIED_METHODS, METHODS, USED_BY, unused_settings
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

NODES = 60
OTHER: dict[str, Any] = {
    "hops": 3,
    "first_share": 0.2,
    "accounting": "as-published",
    "privacy_unit": "node",
    "max_degree": 6,
    "min_degree": 2,
    "clip": 0.1,
    "spectral_norm": "exact",
    "noise_reading": "per-vector",
    "message_width": 3,
    "members": 2,
    "steps": 2,
    "degree_share": 0.9,
    "label_messages": False,
    "decoder_inputs": "raw",
    "features": "raw",
}
Train = Callable[..., dict[str, Any]]


@pytest.fixture
def train(tmp_path: Path, write_folders: Callable[..., Path]) -> Train:
    rng = np.random.default_rng(0)
    ends = rng.integers(0, NODES, (4 * NODES, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    truth = np.arange(NODES) % 3
    folder = write_folders(
        tmp_path / "folders",
        nodes={"id": range(NODES)} | {f"f{k}": rng.normal(size=NODES) + truth for k in range(4)},
        edges={"src": ends[:, 0], "dst": ends[:, 1]},
        labels={
            "id": range(NODES),
            "label": truth,
            "split": [("train", "val", "test")[k // 3 % 3] for k in range(NODES)],
        },
    )

    def trained(**settings: Any) -> dict[str, Any]:
        """Train and return the weights of both parties."""
        short = {"epochs": 2, "width": 8, "epsilon": 8.0, **settings}
        out = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        simulate(folder, load_config(None, short), out)
        return {
            f"{side} {name}": array
            for side in ("data", "label")
            for name, array in read_arrays(out / f"{side}_party.npz").items()
        }

    return trained


def is_equal(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(
        np.array_equal(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_is_not_read_changes_nothing(train: Train, method: str) -> None:
    unused = unused_settings(load_config(None, {"method": method, **OTHER}))
    defaults = METHODS[method].defaults  # `label_messages` is off where no messages are sent
    assert set(unused) == {
        name
        for name, is_read in USED_BY.items()
        if not is_read(load_config(None, {"method": method, **OTHER}))
        and defaults.get(name) != OTHER[name]
    }
    ignored = {name: OTHER[name] for name in unused}
    assert is_equal(train(method=method), train(method=method, **ignored))


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (method, name)
        for method in ("certified", "gap", "vfgnn", "paper-gcn", "mlp")
        for name, is_read in USED_BY.items()
        if is_read(load_config(None, {"method": method}))
        and (name != "privacy_unit" or method in CERTIFIED_METHODS)  # others refuse it
        and name != "accounting"
    ],
)
def test_a_setting_that_is_read_changes_something(train: Train, method: str, name: str) -> None:
    more: dict[str, Any] = {}
    if name == "privacy_unit":
        more = {"max_degree": 30}
    if name == "first_share":
        more = {"hops": 2}
    runs = train(method=method, **more), train(method=method, **more, **{name: OTHER[name]})
    assert not is_equal(*runs)


def test_defaults_are_not_reported() -> None:
    for method in METHODS:
        assert unused_settings(load_config(None, {"method": method})) == []
