import errno
import os
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.door import ChargedDoor, ClaimedDoor
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.noisy_graph.lapgraph import LapGraph
from vesper.mechanism.noisy_graph.perturbed_graph import graph_bytes
from vesper.mechanism.release_store import HEADER_BYTES, ReleaseStore
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger

GRAPH = Graph.from_edges(3, [(0, 1), (1, 2)])
MESSAGES = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, -1.0]], dtype=np.float32)
ARRAYS = {"sums": np.arange(6, dtype=np.float32).reshape(3, 2)}


def door(path: Path, *, run: str = "session", epsilon: float = 1.0) -> ChargedDoor:
    """A door as after a restart: noise from the operating system, everything else from disk."""
    return ChargedDoor(
        GRAPH,
        ledger=Ledger(path / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=epsilon, delta=1e-6),
        noise=NoiseSource.from_os(),
        run=run,
        release_store=ReleaseStore(path / run),
    )


def test_stored_arrays_are_read_back(tmp_path: Path) -> None:
    digest = ReleaseStore(tmp_path).put(7, ARRAYS)
    assert np.array_equal(ReleaseStore(tmp_path).get(7, digest)["sums"], ARRAYS["sums"])
    arrays = ReleaseStore(tmp_path).find(7)
    assert arrays is not None
    assert np.array_equal(arrays["sums"], ARRAYS["sums"])
    assert ReleaseStore(tmp_path).find(8) is None


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "changed", "other"])
def test_a_lost_or_changed_file_is_never_redrawn(tmp_path: Path, damage: str) -> None:
    first = door(tmp_path)
    first.release(MESSAGES, noise_std=8.0)
    (path,) = (tmp_path / "session").glob("*.npz")
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "other":
        np.savez(path, allow_pickle=False, sums=ARRAYS["sums"])
    else:
        half = len(content) // 2
        flipped = content[:150] + bytes([content[150] ^ 1]) + content[151:]
        path.write_bytes({"empty": b"", "cut": content[:half], "changed": flipped}[damage])
    with pytest.raises(VesperError, match="missing or changed; noise is never drawn twice"):
        door(tmp_path).release(MESSAGES, noise_std=8.0)


def test_a_restarted_door_gives_the_same_values_at_no_cost(tmp_path: Path) -> None:
    first = door(tmp_path)
    releases = [first.release(MESSAGES, noise_std=12.0) for _ in range(2)]
    spent = first.account.spent.copy()
    assert not np.array_equal(releases[0], releases[1])
    second = door(tmp_path)
    again = [second.release(np.zeros_like(MESSAGES), noise_std=12.0) for _ in range(2)]
    assert all(np.array_equal(one, other) for one, other in zip(releases, again, strict=True))
    assert np.array_equal(second.account.spent, spent)


def test_a_door_that_died_between_charging_and_storing_draws_under_the_same_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = door(tmp_path)

    def killed(number: int, arrays: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(first._release_store, "put", killed)
    with pytest.raises(KeyboardInterrupt):
        first.release(MESSAGES, noise_std=8.0)
    spent = first.account.spent.copy()
    assert spent.min() > 0
    second = door(tmp_path)
    second.release(MESSAGES, noise_std=8.0)
    assert np.array_equal(second.account.spent, spent)


def test_another_run_is_charged_separately(tmp_path: Path) -> None:
    door(tmp_path, run="one").release(MESSAGES, noise_std=12.0)
    other = door(tmp_path, run="two")
    other.release(MESSAGES, noise_std=12.0)
    assert other.account.releases == 2


def test_noisy_edges_are_stored_too(tmp_path: Path) -> None:
    first = door(tmp_path, epsilon=2.0).perturb(EdgeRand(epsilon=1.0))
    again = door(tmp_path, epsilon=2.0).perturb(EdgeRand(epsilon=1.0))
    assert np.array_equal(first.indptr, again.indptr)
    assert np.array_equal(first.neighbors, again.neighbors)


def test_space_for_noisy_edges_is_reserved_before_they_are_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing again until a graph fits on disk would select for small graphs."""
    requested = []

    def full(handle: int, start: int, size: int) -> None:
        requested.append(size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened = door(tmp_path, epsilon=50.0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(VesperError, match=r"expected space for .* bytes .* it was not drawn"):
        opened.perturb(EdgeRand(epsilon=1.0))
    assert opened.account.releases == 0
    assert list((tmp_path / "session").iterdir()) == []
    door(tmp_path, run="sums", epsilon=50.0).release(MESSAGES, noise_std=10.0)
    assert len(requested) == 1  # the size of sums is known beforehand
    monkeypatch.undo()
    noisy = door(tmp_path, epsilon=50.0).perturb(EdgeRand(epsilon=1.0))
    files = list((tmp_path / "session").iterdir())
    assert [path.suffix for path in files] == [".npz"]
    assert files[0].stat().st_size < requested[0]
    again = door(tmp_path, epsilon=50.0).perturb(EdgeRand(epsilon=1.0))
    assert np.array_equal(again.neighbors, noisy.neighbors)


def test_space_can_be_reserved_without_posix_fallocate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    ReleaseStore(tmp_path).reserve(4, 3 << 20)
    assert (tmp_path / "0004.room").stat().st_size == (3 << 20) + HEADER_BYTES
    digest = ReleaseStore(tmp_path).put(4, ARRAYS)
    assert np.array_equal(ReleaseStore(tmp_path).get(4, digest)["sums"], ARRAYS["sums"])
    assert [path.stat().st_size < HEADER_BYTES for path in tmp_path.iterdir()] == [True]


@pytest.mark.parametrize("epsilon", [0.3, 3.0, 20.0])
@pytest.mark.parametrize("mechanism", [EdgeRand, LapGraph])
def test_the_reserved_space_is_enough(
    mechanism: type[EdgeRand] | type[LapGraph], epsilon: float
) -> None:
    ring = Graph.from_edges(300, [(k, (k + 1) % 300) for k in range(300)])
    perturbation = mechanism(epsilon=epsilon)
    for seed in range(20):
        noisy = perturbation.perturb(ring, NoiseSource.for_simulation(seed))
        assert noisy.num_edges <= perturbation.max_edges(ring)
        num_bytes = noisy.indptr.nbytes + noisy.neighbors.nbytes
        assert num_bytes <= graph_bytes(perturbation.max_edges(ring), ring)


def test_a_claimed_door_draws_once_too(tmp_path: Path) -> None:
    doors = [
        ClaimedDoor(GRAPH, noise=NoiseSource.from_os(), release_store=ReleaseStore(tmp_path))
        for _ in range(2)
    ]
    first, again = (each.release(MESSAGES, noise_std=1.0) for each in doors)
    assert np.array_equal(first, again)
    assert not np.array_equal(doors[1].release(MESSAGES, noise_std=1.0), first)


def test_a_full_disk_is_reported_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened = door(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(VesperError, match=r"cannot be stored \(No space left on device\)"):
        ReleaseStore(tmp_path / "v").put(0, ARRAYS)
    assert list((tmp_path / "v").iterdir()) == []
    monkeypatch.undo()
    assert opened.release(MESSAGES, noise_std=8.0).shape == (3, 2)
