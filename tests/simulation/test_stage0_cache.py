"""What a run need not repeat changes nothing in how it ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.method.registry import METHODS
from vesper.session.config import load_config
from vesper.session.result import Result
from vesper.simulation.simulate import simulate
from vesper.simulation.stage0_cache import Stage0Cache

SEVERAL_STAGES = {"certified", "gap", "progap"}


@pytest.fixture
def folders(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """A ring of 90 with weak features."""
    rng = np.random.default_rng(0)
    return write_folders(
        tmp_path / "parties",
        nodes={"id": range(90), "f": rng.normal(size=90), "g": rng.normal(size=90)},
        edges={"src": range(90), "dst": [(k + 3) % 90 for k in range(90)]},
        labels={
            "id": range(90),
            "label": [k % 3 for k in range(90)],
            "split": [("train", "val", "test")[k // 3 % 3] for k in range(90)],
        },
    )


def run(
    folders: Path, out: Path, stage0_cache: Stage0Cache | None = None, **settings: Any
) -> Result:
    config = load_config(None, {"epochs": 2, "width": 8, **settings})
    return simulate(folders, config, out, stage0_cache=stage0_cache)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_ends_as_it_would_have(method: str, folders: Path, tmp_path: Path) -> None:
    begun = Stage0Cache(tmp_path / "begun")
    run(folders, tmp_path / "first", begun, method=method, epsilon=1.0)
    then = run(folders, tmp_path / "then", begun, method=method, epsilon=4.0)
    alone = run(folders, tmp_path / "alone", method=method, epsilon=4.0)
    assert then.stages == alone.stages
    assert then.privacy == alone.privacy
    for party in ("data_party.npz", "label_party.npz"):
        ours, theirs = np.load(tmp_path / "then" / party), np.load(tmp_path / "alone" / party)
        assert set(ours) == set(theirs)
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    went_on = then.bytes_to_data_party < alone.bytes_to_data_party
    assert went_on == (method in SEVERAL_STAGES)
    assert (tmp_path / "begun").exists() == (method in SEVERAL_STAGES)


@pytest.mark.parametrize(
    "other",
    [
        {"aggregator": "max"},
        {"aggregator": "gcn-clamped", "min_degree": 3},
        {"delta": 1e-6, "first_share": 0.3},
    ],
)
def test_edges_may_be_asked_otherwise(other: dict[str, Any], folders: Path, tmp_path: Path) -> None:
    begun = Stage0Cache(tmp_path / "begun")
    run(folders, tmp_path / "first", begun)
    then = run(folders, tmp_path / "then", begun, **other)
    alone = run(folders, tmp_path / "alone", **other)
    assert then.stages == alone.stages
    assert then.bytes_to_data_party < alone.bytes_to_data_party


@pytest.mark.parametrize("other", [{"seed": 1}, {"hops": 1}, {"width": 9}, {"label_epsilon": 2.0}])
def test_who_begins_otherwise_begins_anew(
    other: dict[str, Any], folders: Path, tmp_path: Path
) -> None:
    begun = Stage0Cache(tmp_path / "begun")
    run(folders, tmp_path / "first", begun, hops=2)
    then = run(folders, tmp_path / "then", begun, **{"hops": 2, **other})
    alone = run(folders, tmp_path / "alone", **{"hops": 2, **other})
    assert (then.stages, then.bytes_to_data_party) == (alone.stages, alone.bytes_to_data_party)


def test_only_the_newest_are_kept(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vesper.simulation.stage0_cache.MAX_STORED_ENTRIES", 2)
    begun = Stage0Cache(tmp_path / "begun")
    for seed in range(3):
        run(folders, tmp_path / str(seed), begun, seed=seed, epochs=1, hops=1)
    assert len(list((tmp_path / "begun").iterdir())) == 2
