"""A process is killed between every two lines that store a release: it is always the same release.

Each case kills a process at one line, and the next at another, and lets the third finish.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vesper.files
from vesper.graph.graph import Graph
from vesper.mechanism import release_key, release_store
from vesper.mechanism.door import ChargedDoor, ClaimedDoor, open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.release_store import ReleaseStore
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.store import Ledger

RING = Graph.from_edges(40, [(k, (k + 1) % 40) for k in range(40)])
MESSAGES = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 3)).astype(np.float32)
STORING = {module.__file__ for module in (vesper.files, release_key, release_store)}
KILLED, FINISHED = 9, 0


def door(path: Path) -> ChargedDoor:
    account = open_graph_account(
        RING,
        "payments",
        ledger=Ledger(path / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=4.0, delta=1e-6),
        simulated=False,
    )
    return ChargedDoor(
        RING,
        account=account,
        noise=NoiseSource.from_os(),
        run="session",
        release_store=ReleaseStore(path / "releases"),
    )


def noisy_edges(path: Path) -> NDArray[Any]:
    noisy = door(path).perturb(EdgeRand(epsilon=1.0))
    return np.concatenate([noisy.indptr, noisy.neighbors])


def noisy_edges_of(key: bytes) -> NDArray[Any]:
    noisy = EdgeRand(epsilon=1.0).perturb(RING, NoiseSource.for_release(key))
    return np.concatenate([noisy.indptr, noisy.neighbors])


def noisy_sums(path: Path) -> NDArray[Any]:
    return door(path).release(MESSAGES, noise_std=6.0)


def noisy_sums_of(key: bytes) -> NDArray[Any]:
    """The values without ledger and store."""
    return ClaimedDoor(RING, noise=NoiseSource.for_release(key)).release(MESSAGES, noise_std=6.0)


def killed_at(line: int, work: Callable[[Path], object], path: Path) -> int:
    """Do the work in a process that ends just before the given line of those that store."""
    child = os.fork()
    if child == 0:
        lines = 0

        def count(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal lines
            if frame.f_code.co_filename not in STORING:
                return None
            if event == "line":
                if lines == line:
                    os._exit(KILLED)
                lines += 1
            return count

        code = 1
        try:
            sys.settrace(count)
            work(path)
            sys.settrace(None)
            code = FINISHED
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def keys_in(path: Path) -> list[bytes]:
    return [key.read_bytes() for key in (path / "releases").glob("*.key")]


@pytest.mark.parametrize(
    ("work", "values_of", "stride"),
    [(noisy_edges, noisy_edges_of, 1), (noisy_sums, noisy_sums_of, 3)],
)
def test_the_same_values_are_released_wherever_processes_are_killed(
    tmp_path: Path,
    work: Callable[[Path], NDArray[Any]],
    values_of: Callable[[bytes], NDArray[Any]],
    stride: int,
) -> None:
    work(tmp_path)  # compiles what is compiled once
    line, outcome, seen = 0, KILLED, set[str]()
    while outcome == KILLED:
        path = tmp_path / str(line)
        path.mkdir()
        outcome = killed_at(line, work, path)
        first_keys = keys_in(path)
        killed_at(11 * line % 83, work, path)  # at some other line, or not at all
        keys = keys_in(path)
        drafts = list((path / "releases").glob("*.npz"))
        seen.add(f"{len(first_keys)} keys, {len(drafts)} files")
        released = work(path)
        for key in {*first_keys, *keys}:
            assert np.array_equal(released, values_of(key)), line
        (stored,) = (path / "releases").iterdir()  # no key, no other draft, nothing partial
        assert [draft.name for draft in drafts] in ([], [stored.name]), line
        assert np.array_equal(released, work(path)), line
        assert door(path).account.charges_of("session") == 1, line
        line += stride
    assert outcome == FINISHED
    assert line > 60
    assert {"0 keys, 0 files", "1 keys, 0 files", "1 keys, 1 files"} <= seen
