import errno
import os
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import VesperError
from vesper.files import partial_folder
from vesper.graph.graph import Graph
from vesper.mechanism.door import ChargedDoor, ClaimedDoor, open_graph_account
from vesper.mechanism.noise.noise_source import KEY_BYTES, NoiseSource
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.noisy_graph.lapgraph import LapGraph
from vesper.mechanism.release_key import PARTIAL
from vesper.mechanism.release_store import Arrays, ReleaseStore
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger

GRAPH = Graph.from_edges(3, [(0, 1), (1, 2)])
MESSAGES = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, -1.0]], dtype=np.float32)
ARRAYS = {"sums": np.arange(6, dtype=np.float32).reshape(3, 2)}


def door(
    path: Path, *, run: str = "session", epsilon: float = 1.0, graph: Graph = GRAPH
) -> ChargedDoor:
    """A door as after a restart: noise from the operating system, everything else from disk."""
    account = open_graph_account(
        graph,
        "payments",
        ledger=Ledger(path / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=epsilon, delta=1e-6),
        simulated=False,
    )
    return ChargedDoor(
        graph,
        account=account,
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


@pytest.mark.parametrize("mechanism", [EdgeRand, LapGraph])
def test_attempts_that_fail_draw_the_same_noisy_edges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: type[EdgeRand] | type[LapGraph]
) -> None:
    """Whatever decides whether an attempt survives: it does not select among draws."""
    ring = Graph.from_edges(300, [(k, (k + 1) % 300) for k in range(300)])
    drawn: list[Arrays] = []

    def fails(release_store: ReleaseStore, number: int, arrays: Arrays) -> str:
        drawn.append(arrays)
        raise VesperError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(ReleaseStore, "put", fails)
        for _ in range(3):
            with pytest.raises(VesperError, match="the disk is full"):
                door(tmp_path, epsilon=9.0, graph=ring).perturb(mechanism(epsilon=4.0))
    kept = door(tmp_path, epsilon=9.0, graph=ring)
    noisy = kept.perturb(mechanism(epsilon=4.0))
    assert noisy.num_edges > 0
    for arrays in drawn:
        assert np.array_equal(arrays["indptr"], noisy.indptr)
        assert np.array_equal(arrays["neighbors"], noisy.neighbors)
    assert kept.account.charges_of("session") == 1


def test_noise_of_two_releases_has_two_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []
    original = NoiseSource.for_release

    def recorded(key: bytes) -> NoiseSource:
        keys.append(key)
        return original(key)

    monkeypatch.setattr(NoiseSource, "for_release", recorded)
    opened = door(tmp_path)
    opened.release(MESSAGES, noise_std=12.0)
    opened.release(MESSAGES, noise_std=12.0)
    assert len(set(keys)) == 2


def test_a_key_is_deleted_once_its_release_is_stored(tmp_path: Path) -> None:
    door(tmp_path).release(MESSAGES, noise_std=8.0)
    assert [path.suffix for path in (tmp_path / "session").iterdir()] == [".npz"]


def test_simulated_noise_stores_no_key(tmp_path: Path) -> None:
    simulated = NoiseSource.for_simulation(1)
    assert ReleaseStore(tmp_path).noise_for(3, simulated) is simulated
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_remains_alone(tmp_path: Path) -> None:
    release_store = ReleaseStore(tmp_path)
    digests = [release_store.put(4, {"sums": np.full(2, k)}) for k in range(3)]
    other = release_store.put(14, ARRAYS)
    release_store.noise_for(4, NoiseSource.from_os())
    release_store.noise_for(14, NoiseSource.from_os())
    (tmp_path / "0004.room").touch()
    assert release_store.get(4, digests[1])["sums"].tolist() == [1, 1]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"0004-{digests[1]}.npz", f"0014-{other}.npz", "0014.key"}


def test_what_a_dead_process_was_writing_is_removed_when_the_folder_is_opened(
    tmp_path: Path,
) -> None:
    (tmp_path / f"{PARTIAL}dead").mkdir()
    (tmp_path / f"{PARTIAL}dead" / "key").write_bytes(bytes(KEY_BYTES))
    with partial_folder(tmp_path, PARTIAL) as alive:
        ReleaseStore(tmp_path)
        assert list(tmp_path.iterdir()) == [alive]


def test_a_file_that_cannot_be_deleted_is_reported(tmp_path: Path) -> None:
    release_store = ReleaseStore(tmp_path)
    digest = release_store.put(4, ARRAYS)
    (tmp_path / "0004.key").mkdir()
    with pytest.raises(VesperError, match=r"0004\.key: cannot be deleted .* delete it, then"):
        release_store.get(4, digest)


@pytest.mark.parametrize("lost", ["charged", "stored"])
def test_a_ledger_that_knows_less_than_the_files_is_refused(tmp_path: Path, lost: str) -> None:
    """A restored copy: the release may have been sent, and its key is gone."""
    copy = tmp_path / "copy"
    copy.mkdir()
    opened = door(tmp_path)

    def died(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    if lost == "stored":
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(opened.account, "mark_stored", died)
            with pytest.raises(KeyboardInterrupt):
                opened.release(MESSAGES, noise_std=8.0)
    for path in tmp_path.glob("ledger*"):
        (copy / path.name).write_bytes(path.read_bytes())
    door(tmp_path).release(MESSAGES, noise_std=8.0)
    (tmp_path / "session").rename(copy / "session")
    with pytest.raises(VesperError, match=f"does not record that it was {lost}: .* older copy"):
        door(copy).release(MESSAGES, noise_std=8.0)


def test_a_key_without_a_charge_is_refused(tmp_path: Path) -> None:
    ReleaseStore(tmp_path / "session").noise_for(0, NoiseSource.from_os())
    opened = door(tmp_path)
    with pytest.raises(VesperError, match="does not record that it was charged"):
        opened.release(MESSAGES, noise_std=8.0)
    assert opened.account.charges_of("session") == 0


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
