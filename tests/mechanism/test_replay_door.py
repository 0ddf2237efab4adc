"""A replay door reads stored releases in order and can neither charge nor draw."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import InputError, VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.door import ChargedDoor, open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.release_store import ReleaseStore
from vesper.mechanism.replay_door import ReplayDoor
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.store import Ledger

PATH = Graph.from_edges(3, [(0, 1), (1, 2)])
MESSAGES = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, -1.0]], dtype=np.float32)


def charged(path: Path, run: str = "test") -> ChargedDoor:
    account = open_graph_account(
        PATH,
        "path",
        ledger=Ledger(path / "ledger.sqlite", clock=lambda: 0.0),
        budget=Budget(epsilon=4.0, delta=1e-6),
        simulated=True,
    )
    return ChargedDoor(
        PATH,
        account=account,
        noise=NoiseSource.for_simulation(0),
        run=run,
        release_store=ReleaseStore(path / ("releases" if run == "test" else run)),
    )


def test_releases_are_replayed_in_order_and_the_ledger_is_unchanged(tmp_path: Path) -> None:
    door = charged(tmp_path)
    charged(tmp_path, run="another").release(MESSAGES, noise_std=9.0)  # is not replayed
    releases = [door.release(MESSAGES, noise_std=8.0) for _ in range(2)]
    before = (tmp_path / "ledger.sqlite").read_bytes()
    with closing(open_to_read(tmp_path / "ledger.sqlite")) as ledger:
        replay = ReplayDoor(
            ledger=ledger, run="test", release_store=ReleaseStore(tmp_path / "releases")
        )
        for sums in releases:
            assert np.array_equal(replay.release(MESSAGES, noise_std=1.0), sums)
        with pytest.raises(VesperError, match="never made"):
            replay.release(MESSAGES, noise_std=8.0)
        assert replay.spending_summary() == ""
        with pytest.raises(ValueError, match="not the graph"):
            replay.uncertified_graph()
    assert (tmp_path / "ledger.sqlite").read_bytes() == before


def test_noisy_edges_are_replayed(tmp_path: Path) -> None:
    noisy = charged(tmp_path).perturb(EdgeRand(epsilon=1.0))
    with closing(open_to_read(tmp_path / "ledger.sqlite")) as ledger:
        replay = ReplayDoor(
            ledger=ledger, run="test", release_store=ReleaseStore(tmp_path / "releases")
        )
        again = replay.perturb(EdgeRand(epsilon=1.0))
    assert np.array_equal(again.neighbors, noisy.neighbors)


def test_another_run_or_shape_is_refused(tmp_path: Path) -> None:
    charged(tmp_path).release(MESSAGES, noise_std=8.0)
    release_store = ReleaseStore(tmp_path / "releases")
    with closing(open_to_read(tmp_path / "ledger.sqlite")) as ledger:
        with pytest.raises(InputError, match="found no release by other"):
            ReplayDoor(ledger=ledger, run="other", release_store=release_store)
        replay = ReplayDoor(ledger=ledger, run="test", release_store=release_store)
        with pytest.raises(VesperError, match="shape"):
            replay.release(MESSAGES[:, :1], noise_std=8.0)
