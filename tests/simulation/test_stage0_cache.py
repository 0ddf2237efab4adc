"""The stage-0 cache does not change how a run ends."""

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
def test_a_run_ends_the_same_with_and_without_the_cache(
    method: str, folders: Path, tmp_path: Path
) -> None:
    cache = Stage0Cache(tmp_path / "cache")
    run(folders, tmp_path / "first", cache, method=method, epsilon=1.0)
    cached = run(folders, tmp_path / "cached", cache, method=method, epsilon=4.0)
    plain = run(folders, tmp_path / "plain", method=method, epsilon=4.0)
    assert cached.stages == plain.stages
    assert cached.privacy == plain.privacy
    for party in ("data_party.npz", "label_party.npz"):
        one, other = np.load(tmp_path / "cached" / party), np.load(tmp_path / "plain" / party)
        assert set(one) == set(other)
        assert all(np.array_equal(one[name], other[name]) for name in one)
    has_resumed = cached.bytes_to_data_party < plain.bytes_to_data_party
    assert has_resumed == (method in SEVERAL_STAGES)
    assert (tmp_path / "cache").exists() == (method in SEVERAL_STAGES)


@pytest.mark.parametrize(
    "other",
    [
        {"aggregator": "max"},
        {"aggregator": "gcn-clamped", "min_degree": 3},
        {"delta": 1e-6, "first_share": 0.3},
    ],
)
def test_settings_of_releases_do_not_affect_the_entry(
    other: dict[str, Any], folders: Path, tmp_path: Path
) -> None:
    cache = Stage0Cache(tmp_path / "cache")
    run(folders, tmp_path / "first", cache)
    cached = run(folders, tmp_path / "cached", cache, **other)
    plain = run(folders, tmp_path / "plain", **other)
    assert cached.stages == plain.stages
    assert cached.bytes_to_data_party < plain.bytes_to_data_party


@pytest.mark.parametrize("other", [{"seed": 1}, {"hops": 1}, {"width": 9}, {"label_epsilon": 2.0}])
def test_a_different_stage_0_is_trained_anew(
    other: dict[str, Any], folders: Path, tmp_path: Path
) -> None:
    cache = Stage0Cache(tmp_path / "cache")
    run(folders, tmp_path / "first", cache, hops=2)
    cached = run(folders, tmp_path / "cached", cache, **{"hops": 2, **other})
    plain = run(folders, tmp_path / "plain", **{"hops": 2, **other})
    assert (cached.stages, cached.bytes_to_data_party) == (plain.stages, plain.bytes_to_data_party)


def test_only_the_newest_entries_are_stored(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vesper.simulation.stage0_cache.MAX_STORED_ENTRIES", 2)
    cache = Stage0Cache(tmp_path / "cache")
    for seed in range(3):
        run(folders, tmp_path / str(seed), cache, seed=seed, epochs=1, hops=1)
    assert len(list((tmp_path / "cache").iterdir())) == 2
