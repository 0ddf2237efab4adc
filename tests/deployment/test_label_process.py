"""Runs of both parties from their files to their results, in one process over loopback."""

import re
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party
from vesper.engine.engine import InProcessEngine
from vesper.errors import BudgetError, InputError, PeerError, VesperError
from vesper.graph.holdings import open_data
from vesper.mechanism.door import open_graph_account
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release_store import ReleaseStore
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger
from vesper.session.contract import approve
from vesper.session.label_responses import RESPONSE_SEED_OFFSET
from vesper.simulation.simulate import simulate

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both


@pytest.mark.parametrize(
    "privacy",
    [
        "",
        "label_epsilon = 2.0",
        'privacy_unit = "node"\nmax_degree = 59',
        'aggregator = "gcn-clamped"',
        'aggregator = "mean"',
        'aggregator = "gat"',
        'aggregator = "max"',
    ],
)
def test_weights_and_metrics_equal_those_of_a_run_in_memory(
    both: "Both", tmp_path: Path, privacy: str
) -> None:
    both.change("hops = 2", f"hops = 2\n{privacy}")
    path = both.settings[1]
    path.write_text(
        re.sub("^#?ledger = .*", 'ledger = "labels.sqlite"', path.read_text(), flags=re.M)
    )
    data, label = both.configs()
    seed = data.shared.run.seed
    simulated_noise = NoiseSource.for_simulation
    ours, theirs = both.run(
        data,
        label,
        noise=simulated_noise(seed),
        of_label={"noise": simulated_noise(seed + RESPONSE_SEED_OFFSET)},
    )
    folder = tmp_path / "parties"
    folder.mkdir()
    (folder / "data").symlink_to(data.party.folder)
    (folder / "label").symlink_to(label.party.folder)
    simulated = simulate(folder, data.shared, tmp_path / "run")
    assert theirs.result().stages == simulated.stages
    assert ours.result().bytes_sent == simulated.bytes_to_label_party
    assert theirs.result().bytes_sent == simulated.bytes_to_data_party
    for config in (data, label):
        name = f"{config.party.role}_party.npz"
        weights = np.load(config.party.state / "result" / name)
        expected = np.load(tmp_path / "run" / name)
        assert set(weights.files) == set(expected.files)
        assert all(np.array_equal(weights[key], expected[key]) for key in expected.files)


def test_the_data_party_chooses_where_releases_are_computed(
    both: "Both", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Engine(InProcessEngine):
        def __init__(self, *, address: str | None, num_workers: int | None) -> None:
            super().__init__(3)
            engines.append(self)

        def __enter__(self) -> "Engine":
            return self

        def __exit__(self, *exception: object) -> None:
            pass

    engines: list[Engine] = []
    monkeypatch.setattr("vesper.engine.ray_engine.RayEngine", Engine)
    path = both.settings[0]
    path.write_text(path.read_text().replace('#engine = "local"', 'engine = "ray"'))
    data, label = both.configs()
    sides = both.run(data, label, noise=NoiseSource.for_simulation(data.shared.run.seed))
    folder = tmp_path / "parties"
    folder.mkdir()
    (folder / "data").symlink_to(data.party.folder)
    (folder / "label").symlink_to(label.party.folder)
    simulated = simulate(folder, data.shared, tmp_path / "run")
    assert sides[1].result().stages == simulated.stages
    assert sides[0].result().privacy == replace(
        simulated.privacy, noise=sides[0].result().privacy.noise
    )
    assert both.charged(data) == 3
    assert len(engines) == 1
    assert engines[0].calls_made


def test_a_finished_run_is_not_run_again(both: "Both") -> None:
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    for again in (run_data_party, run_label_party):
        config: Any = data if again is run_data_party else label
        with pytest.raises(InputError, match="this run is finished"):
            again(config)
    assert both.charged(data) == 3


def test_nothing_starts_without_approval(both: "Both") -> None:
    data, _ = both.configs(approved=False)
    with pytest.raises(InputError, match="expected the approved contract"):
        run_data_party(data)


def test_resuming_needs_a_run(both: "Both") -> None:
    data, _ = both.configs()
    with pytest.raises(InputError, match="no run to resume"):
        run_data_party(data, resume=True)


def test_both_sides_report_different_contracts_and_can_start_again(both: "Both") -> None:
    data, label = both.configs()
    path = both.settings[1]
    text = path.read_text()
    path.write_text(text.replace("epochs = 2", "epochs = 3"))
    other = load_party_config(path)
    approve(other.party.state, other.shared)
    for side in both.run(data, other):
        with pytest.raises(VesperError, match=r"run.epochs: [23] here, [23] there"):
            side.result()
    assert both.charged(data) == 0
    path.write_text(text)
    approve(label.party.state, label.shared)
    for side in both.run(data, label):
        side.result()
    assert both.charged(data) == 3


def test_an_insufficient_budget_is_refused_before_connecting(both: "Both") -> None:
    """Only the owner learns it: the peer sees nobody, as if this side had not been started."""
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    both.change('state = "state"', 'state = "second"')
    again, _ = both.configs()
    with pytest.raises(BudgetError, match="does not allow"):
        run_data_party(again)  # no peer is running
    assert not (again.party.state / "transcript.tsv").exists()
    assert both.charged(data) == 3


def test_a_graph_used_without_a_guarantee_is_refused_before_connecting(both: "Both") -> None:
    """Nothing that follows could be certified, whatever it costs; the peer learns nothing."""
    data, _ = both.configs()
    graph, name = open_data(data.party.folder).graph, data.party.graph
    assert name is not None
    with closing(Ledger(data.party.ledger, clock=time.time)) as ledger:
        account = open_graph_account(graph, name, ledger=ledger, simulated=False)
        account.reserve(Reservation(plan="paper"), run="raw")
        account.note_unprotected(run="raw", plan="paper")
    with pytest.raises(BudgetError, match="used without a guarantee by run raw"):
        run_data_party(data)  # no peer is running
    assert not (data.party.state / "transcript.tsv").exists()
    assert both.charged(data) == 0


def test_ids_that_are_not_nodes_are_listed(
    both: "Both", write_folders: Callable[..., Path]
) -> None:
    data, label = both.configs()
    labels = {
        "id": [*range(59), 999],
        "label": [k // 3 % 2 for k in range(60)],
        "split": [("train", "val", "test")[k % 3] for k in range(60)],
    }
    write_folders(label.party.folder.parent, labels=labels)
    ours, theirs = both.run(data, label)
    with pytest.raises(PeerError, match=r"1 ids that are not nodes here \(first 1: 999\)"):
        ours.result()
    with pytest.raises(PeerError):
        theirs.result()
    assert both.charged(data) == 0


def test_one_process_per_state_folder(both: "Both") -> None:
    import fcntl

    data, _ = both.configs()
    with (data.party.state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another process is running this party"):
            run_data_party(data)


def test_another_ledger_never_gets_a_second_draw(both: "Both") -> None:
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    for config in (data, label):  # as if both had been killed before their results were written
        shutil.rmtree(config.party.state / "result")
    other = data.party.ledger.with_name("other.sqlite")
    moved = data.model_copy(update={"party": data.party.model_copy(update={"ledger": other})})
    releases = sorted(path.name for path in (data.party.state / "releases").iterdir())
    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(run_data_party, moved, resume=True)
        pool.submit(run_label_party, label, resume=True).exception()
        with pytest.raises(VesperError, match="the ledger that this run began with"):
            ours.result()
    assert sorted(path.name for path in (data.party.state / "releases").iterdir()) == releases
    assert not other.exists() or both.charged(moved) == 0


def test_a_lost_checkpoint_is_refused(both: "Both") -> None:
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    for config in (data, label):
        shutil.rmtree(config.party.state / "result")
    (label.party.state / "checkpoint.npz").unlink()
    with pytest.raises(VesperError, match="expected the last checkpoint of this run, found none"):
        run_label_party(label, resume=True)


def test_a_state_folder_that_cannot_be_written_is_refused(both: "Both") -> None:
    data, _ = both.configs()
    (data.party.state / "lock").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        run_data_party(data)


def test_a_session_with_a_charged_release_is_not_discarded(
    both: "Both", monkeypatch: pytest.MonkeyPatch
) -> None:
    both.change('method = "certified"', 'method = "edgerand"')
    data, label = both.configs()

    def full(release_store: ReleaseStore, number: int, arrays: object) -> str:
        raise VesperError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(ReleaseStore, "put", full)
        ours, theirs = both.run(data, label)
        with pytest.raises(VesperError, match="the disk is full"):
            ours.result()
        assert theirs.exception() is not None
    assert both.charged(data) == 1
    with ThreadPoolExecutor(2) as pool:
        ours_again = pool.submit(run_data_party, data, resume=True)
        theirs_again = pool.submit(run_label_party, label, resume=True)
        assert ours_again.result().privacy.plan == "certified"
        assert theirs_again.result().method == "edgerand"
    assert both.charged(data) == 1
