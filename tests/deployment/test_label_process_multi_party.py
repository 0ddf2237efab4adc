"""A label party with several data parties, one of them its own, in one process over loopback."""

import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.fixtures.observers import CallingObserver

from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import remaining_peers, run_label_party_with_peers
from vesper.errors import BudgetError, InputError, PeerError
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.privacy.ledger.store import Ledger
from vesper.session.data_parties import SimulatedParty
from vesper.session.result import DataResult, LabelResult
from vesper.simulation.simulate import PARTY_SEED_OFFSET, simulate
from vesper.transport.transcript import first_difference

if TYPE_CHECKING:
    from tests.fixtures.processes import Several

Sides = tuple[dict[str, Future[DataResult]], Future[LabelResult]]


def run_all(several: "Several", *, resume: bool = False, label_noise: Any = None) -> Sides:
    """Run all parties until they end, with the noise of a simulation."""
    table, seed = several.table(), 0
    with ThreadPoolExecutor(3) as pool:
        data = {
            name: pool.submit(
                run_data_party,
                several.data(name),
                resume=resume,
                noise=NoiseSource.for_simulation(seed + number * PARTY_SEED_OFFSET),
            )
            for number, name in enumerate(several.data_files)
        }
        noise = label_noise or NoiseSource.for_simulation(seed + len(data) * PARTY_SEED_OFFSET)
        return data, pool.submit(run_label_party_with_peers, table, resume=resume, noise=noise)


def charges(path: Path) -> int:
    with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
        return sum(entry.cost > 0 for entry in ledger.entries())


def test_weights_and_metrics_equal_those_of_a_simulation(
    several: "Several", tmp_path: Path
) -> None:
    several.write_multi_party_config(own="epsilon = 2.0")
    table = several.table()
    ours, theirs = run_all(several)
    folder = tmp_path / "parties"
    folder.mkdir()
    (folder / "label").symlink_to(several.root / "bank" / "label")
    (folder / "transfers").symlink_to(several.root / "bank" / "transfers")
    for name in several.data_files:
        (folder / name).symlink_to(several.data(name).party.folder)
    parties = (
        SimulatedParty(name="platform"),
        SimulatedParty(name="telecom"),
        SimulatedParty(name="transfers", own=True, epsilon=2.0),
    )
    expected = simulate(folder, table.own.shared, tmp_path / "run", parties=parties)
    result = theirs.result()
    assert result.stages == expected.stages
    assert result.bytes_sent == expected.bytes_to_data_party
    assert [each.name for each in result.parties] == ["platform", "telecom", "transfers"]
    assert [each.privacy.certified_epsilon for each in result.parties] == [4.0, 4.0, 2.0]
    assert result.privacy.certified_epsilon == 4.0
    states = {name: several.data(name).party.state for name in ours}
    states["transfers"] = several.label_file.parent / "state" / "own"
    weights = {f"data_party-{name}": state / "result" for name, state in states.items()}
    for name, place in weights.items():
        actual, simulated = (
            np.load(place / "data_party.npz"),
            np.load(tmp_path / "run" / f"{name}.npz"),
        )
        assert all(np.array_equal(actual[key], simulated[key]) for key in simulated.files)
    ledgers = {name: several.data(name).party.ledger for name in ours}
    assert {name: charges(path) for name, path in ledgers.items()} == {"platform": 3, "telecom": 3}
    assert charges(several.label_file.parent / "own.sqlite") == 3


class Stopped(BaseException):
    """Stands for Ctrl-C."""


def stops_at(step: int) -> Any:
    """Progress that stops a party at a training step."""

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and done == step < total:
            raise Stopped

    return progress


def start_and_leave(
    pool: ThreadPoolExecutor, several: "Several", name: str, *, step: int
) -> "Future[Any]":
    """Start a data party that is stopped at a step."""

    def run() -> None:
        with pytest.raises(Stopped):
            run_data_party(several.data(name), observer=CallingObserver(progress=stops_at(step)))

    return pool.submit(run)


@pytest.mark.parametrize("step", [1, 4, 6, 10])  # of 3 per epoch, 2 epochs per stage, 3 stages
def test_the_run_continues_without_a_party_that_leaves(several: "Several", step: int) -> None:
    several.write_multi_party_config(telecom='when_lost = "go-on"')
    warnings: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        leaving = start_and_leave(pool, several, "telecom", step=step)
        staying = pool.submit(run_data_party, several.data("platform"))
        result = pool.submit(
            run_label_party_with_peers,
            several.table(),
            observer=CallingObserver(warning=warnings.append),
        ).result()
        leaving.result()
        staying.result()
    assert [each.left for each in result.parties] == [False, True]
    assert warnings == [
        "telecom was stopped by its user; continuing without telecom, with what it has sent so far"
    ]
    assert 0 <= result.validation <= 100
    assert (several.data("platform").party.state / "result").exists()
    assert not (several.data("telecom").party.state / "result").exists()
    assert [pair.party.peer for pair in remaining_peers(several.table())] == ["platform"]


def test_the_run_does_not_continue_without_a_party_it_needs(several: "Several") -> None:
    several.write_multi_party_config(platform='when_lost = "go-on"')
    with ThreadPoolExecutor(3) as pool:
        leaving = start_and_leave(pool, several, "telecom", step=4)
        other = pool.submit(run_data_party, several.data("platform"))
        with pytest.raises(PeerError, match="telecom was stopped by its user"):
            run_label_party_with_peers(several.table())
        leaving.result()
        with pytest.raises(PeerError):
            other.result()


@pytest.mark.parametrize("step", [5, 9])
def test_after_a_crash_the_run_continues_without_the_same_party(
    several: "Several", tmp_path: Path, step: int
) -> None:
    several.write_multi_party_config(telecom='when_lost = "go-on"')
    several.change('when_lost = "stop"', 'when_lost = "wait"', "platform")
    warnings: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        leaving = start_and_leave(pool, several, "telecom", step=4)
        staying = pool.submit(run_data_party, several.data("platform"))
        with pytest.raises(Stopped):
            run_label_party_with_peers(
                several.table(), observer=CallingObserver(progress=stops_at(step))
            )
        leaving.result()
        result = run_label_party_with_peers(
            several.table(), resume=True, observer=CallingObserver(warning=warnings.append)
        )
        staying.result()
    assert [each.left for each in result.parties] == [False, True]
    assert warnings == []  # nobody was waited for again
    mine, theirs = (
        several.label_file.parent / "state" / "with" / "platform",
        several.data("platform").party.state,
    )
    assert first_difference(mine / "transcript.tsv", theirs / "transcript.tsv") is None


@pytest.mark.parametrize("step", [2, 8])
def test_all_parties_continue_after_the_label_party_was_stopped(
    several: "Several", step: int, tmp_path: Path
) -> None:
    several.write_multi_party_config(own="")
    undisturbed = run_all(several)[1].result()
    for folder in (
        *(path.parent for path in several.data_files.values()),
        several.label_file.parent,
    ):
        shutil.rmtree(folder / "state")
        for file in folder.glob("*.sqlite*"):
            file.unlink()
    several.change('when_lost = "stop"', 'when_lost = "wait"', *several.data_files)
    with ThreadPoolExecutor(3) as pool:
        others = [
            pool.submit(
                run_data_party,
                several.data(name),
                noise=NoiseSource.for_simulation(number * PARTY_SEED_OFFSET),
            )
            for number, name in enumerate(several.data_files)
        ]
        noise = NoiseSource.for_simulation(2 * PARTY_SEED_OFFSET)
        with pytest.raises(Stopped):
            run_label_party_with_peers(
                several.table(), noise=noise, observer=CallingObserver(progress=stops_at(step))
            )
        result = run_label_party_with_peers(several.table(), noise=noise, resume=True)
        for other in others:
            other.result()
    assert result.stages == undisturbed.stages
    assert charges(several.label_file.parent / "own.sqlite") == 3


def test_the_own_graph_without_budget_is_the_cause(several: "Several") -> None:
    several.write_multi_party_config(own="epsilon = 0.5")
    _, theirs = run_all(several)
    theirs.result()
    for name in several.data_files:
        shutil.rmtree(several.data(name).party.state)
    shutil.rmtree(several.label_file.parent / "state")
    ours, again = run_all(several)
    with pytest.raises(BudgetError):
        again.result()
    for each in ours.values():
        with pytest.raises((PeerError, BudgetError)):
            each.result()


def test_different_numbers_of_stages(several: "Several") -> None:
    several.write_multi_party_config()
    several.change("hops = 2", "hops = 1", "telecom")
    ours, theirs = run_all(several)
    with pytest.raises(InputError, match=r"the contracts differ in 1 settings: privacy\.hops"):
        theirs.result()
    for each in ours.values():
        with pytest.raises((PeerError, InputError)):
            each.result()
    assert not (several.label_file.parent / "state" / "with" / "platform" / "session").exists()
