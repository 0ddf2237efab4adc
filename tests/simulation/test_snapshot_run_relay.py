"""A relay that was planned in training also runs in a later window, within its budget."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

USERS, SHOPS = 1500, 100
SPLITS = [("train", "train", "train", "val", "test")[k % 5] for k in range(USERS)]
QUICK = {"epochs": 15, "width": 16, "members": 1, "seed": 0}


@pytest.fixture
def windows(tmp_path: Path, write_folders: Callable[..., Path]) -> list[Path]:
    """The same users and shops in two windows, with different visits."""
    rng = np.random.default_rng(0)
    kinds, labels = rng.integers(0, 2, SHOPS), rng.integers(0, 2, USERS)
    features = {f"f{k}": rng.normal(size=USERS + SHOPS) for k in range(3)}
    folders = []
    for name in ("first", "second"):
        visits = rng.integers(0, SHOPS, (USERS, 5))
        for kind in (0, 1):
            own = (labels == kind)[:, None] & (rng.random(visits.shape) < 0.5)
            visits[own] = rng.choice(np.flatnonzero(kinds == kind), int(own.sum()))
        folder = write_folders(
            tmp_path / name,
            nodes={"id": range(USERS + SHOPS), **features},
            edges={"src": np.repeat(np.arange(USERS), 5), "dst": USERS + visits.ravel()},
            labels={"id": range(USERS), "label": labels, "split": SPLITS},
        )
        folders.append(folder)
    return folders


@pytest.mark.parametrize("hops", [1, 2])
def test_a_later_window_is_predicted_as_well(
    windows: list[Path], tmp_path: Path, hops: int
) -> None:
    config = load_config(None, {**QUICK, "epsilon": math.inf, "hops": hops})
    result = simulate(windows[0], config, tmp_path / "run", snapshots=[windows[1]])
    assert result.test is not None
    assert result.test > 75, "features are useless"
    assert result.snapshots[0].test > 75


def test_a_hop_and_a_relay_fit_the_budget_of_one_hop(windows: list[Path], tmp_path: Path) -> None:
    config = load_config(None, {**QUICK, "epsilon": 30.0, "hops": 1})
    simulate(windows[0], config, tmp_path / "run", snapshots=[windows[1]])
    written = json.loads((tmp_path / "run" / "result.json").read_text())["snapshots"][0]
    assert written["releases"] == 2
    assert written["epsilon"] <= 30.0
    assert written["epsilon"] == pytest.approx(30.0, rel=1e-3)
