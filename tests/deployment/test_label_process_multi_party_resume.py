"""A label party with several data parties fails, and is resumed."""

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.fixtures.observers import CallingObserver

from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party_with_peers
from vesper.deployment.own_graph import finish_own_graph
from vesper.deployment.saved_run import save_data_run
from vesper.deployment.state_folder import is_finished, wait_for_peer_to_finish
from vesper.errors import BudgetError, InputError, PeerLostError, VesperError
from vesper.privacy.ledger.reservation import open_runs, return_unused
from vesper.privacy.ledger.store import Ledger
from vesper.protocol.messages import Gradients
from vesper.session.peer import RemoteDataParty
from vesper.transport.transcript import first_difference

if TYPE_CHECKING:
    from tests.fixtures.processes import Several

Start = Callable[..., dict[str, "Future[Any]"]]

LIMIT = 120.0


class Stopped(BaseException):
    """Stands for Ctrl-C or kill -9: nothing is cleaned up."""


@pytest.fixture
def start(several: "Several") -> Iterator[Start]:
    """Starts data parties, each in a thread."""
    pool = ThreadPoolExecutor(8)

    def begin(act: Callable[..., Any] = run_data_party, *names: str, **given: Any) -> Any:
        return {
            name: pool.submit(act, several.data(name), **given)
            for name in names or several.data_files
        }

    yield begin
    pool.shutdown(wait=False)


def waits_until(seconds: int, error: BaseException) -> Any:
    """Make progress that stops a party once it has waited so long."""

    def progress(task: str, done: int, total: int, note: str = "") -> None:
        if task.startswith("waiting") and done >= seconds:
            raise error

    return progress


def charges(path: Path) -> int:
    with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
        return sum(entry.cost > 0 for entry in ledger.entries())


def remove_states(several: "Several", *ledgers: str) -> None:
    """Remove all states, and the ledgers of these parties."""
    for name in ("bank", *several.data_files):
        shutil.rmtree(several.root / name / "state")
    for name in ledgers:
        for file in (several.root / name).rglob("*.sqlite*"):
            file.unlink()


def test_a_single_data_party_table(several: "Several", start: Start) -> None:
    del several.data_files["telecom"]
    several.write_multi_party_config()
    others = start()
    result = run_label_party_with_peers(several.table())
    others["platform"].result(LIMIT)
    assert [each.name for each in result.parties] == ["platform"]
    assert (several.root / "bank" / "state" / "result" / "with" / "platform").is_dir()


def test_stopped_before_any_party_connected(several: "Several", start: Start) -> None:
    several.write_multi_party_config(own="")
    with pytest.raises(Stopped):
        run_label_party_with_peers(
            several.table(), observer=CallingObserver(progress=waits_until(0, Stopped()))
        )
    assert (several.root / "bank" / "state" / "own" / "session").exists()
    several.change(
        '[[data_party]]\nname = "transfers"', '[[data_party]]\nepsilon = 2.0\nname = "transfers"'
    )
    others = start()
    run_label_party_with_peers(several.table())  # not --resume: there is nothing to resume
    for each in others.values():
        each.result(LIMIT)
    assert charges(several.root / "bank" / "own.sqlite") == 3


def test_the_own_graph_fails_before_any_party_connected(several: "Several") -> None:
    several.write_multi_party_config(own="")
    shutil.rmtree(several.root / "bank" / "transfers")
    several.change('when_lost = "stop"', 'when_lost = "wait"', "bank")
    with pytest.raises(InputError, match="transfers"):
        run_label_party_with_peers(
            several.table(), observer=CallingObserver(progress=waits_until(60, Stopped()))
        )


def test_a_crash_between_two_answers_and_one_party_does_not_come_back(
    several: "Several", start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    several.write_multi_party_config(telecom='when_lost = "go-on"')
    several.change('when_lost = "stop"', 'when_lost = "wait"', "platform")
    calls = 0

    def learn(self: RemoteDataParty, gradients: Gradients) -> None:
        nonlocal calls
        calls += 1
        if calls == 8:  # of step 4, to the telecom: the platform has its gradients
            raise Stopped
        self._link.send(gradients)

    with monkeypatch.context() as patched:
        patched.setattr(RemoteDataParty, "learn", learn)
        others = start()
        with pytest.raises(Stopped):
            run_label_party_with_peers(several.table())
    with pytest.raises(PeerLostError):
        others["telecom"].result(LIMIT)  # and does not come back
    result = run_label_party_with_peers(several.table(), resume=True)
    others["platform"].result(LIMIT)
    assert [each.left for each in result.parties] == [False, True]
    mine = several.root / "bank" / "state" / "with" / "platform" / "transcript.tsv"
    theirs = several.root / "platform" / "state" / "transcript.tsv"
    assert first_difference(mine, theirs) is None


def test_what_stops_one_party_costs_the_others_nothing(several: "Several", start: Start) -> None:
    several.write_multi_party_config(own="")
    others = start()
    run_label_party_with_peers(several.table())
    for each in others.values():
        each.result(LIMIT)
    remove_states(several, "bank", "platform")  # the telecom's budget stays spent
    others = start()
    with pytest.raises(Stopped):  # the telecom does not connect, and nobody learns why
        run_label_party_with_peers(
            several.table(), observer=CallingObserver(progress=waits_until(3, Stopped()))
        )
    with pytest.raises(BudgetError):
        others["telecom"].result(LIMIT)
    with pytest.raises(PeerLostError, match="bank was stopped by its user"):
        others["platform"].result(LIMIT)
    for file in (several.root / "telecom").rglob("*.sqlite*"):
        file.unlink()
    others = start(run_data_party, "platform", resume=True) | start(run_data_party, "telecom")
    run_label_party_with_peers(several.table(), resume=True)
    for each in others.values():
        each.result(LIMIT)
    assert charges(several.data("platform").party.ledger) == 3
    assert charges(several.root / "bank" / "own.sqlite") == 3


def test_the_own_graph_is_finished_and_the_label_party_is_not(
    several: "Several", start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    several.change("patience = 5.0", "patience = 0.2", "bank")
    several.write_multi_party_config(platform="patience = 5.0", telecom="patience = 5.0", own="")
    table = several.table()
    assert table.graph is not None
    assert table.graph.party.patience == 0.2

    def finish(self: RemoteDataParty) -> None:
        raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(RemoteDataParty, "finish", finish)
        others = start()
        with pytest.raises(Stopped):
            run_label_party_with_peers(table)
    for each in others.values():
        each.result(LIMIT)
    assert is_finished(table.graph)
    slept: list[int] = []

    def slow(task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and not slept:
            slept.append(done)
            time.sleep(1.0)  # longer than the patience of the own graph

    others = start(wait_for_peer_to_finish)
    result = run_label_party_with_peers(table, resume=True, observer=CallingObserver(progress=slow))
    for each in others.values():
        each.result(LIMIT)
    assert slept
    assert 0 <= result.validation <= 100
    assert charges(several.root / "bank" / "own.sqlite") == 3


def test_the_label_party_is_finished_and_the_own_graph_is_not(
    several: "Several", start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    several.write_multi_party_config(own="")
    table = several.table()
    assert table.graph is not None

    def full(out: Path, *given: Any) -> None:
        if out.parent.name == "own":
            raise VesperError("the disk is full")
        save_data_run(out, *given)

    with monkeypatch.context() as patched:
        patched.setattr("vesper.deployment.data_process.save_data_run", full)
        others = start()
        with pytest.raises(VesperError, match="the disk is full"):
            run_label_party_with_peers(table)
    for each in others.values():
        each.result(LIMIT)
    assert is_finished(table.own)
    assert not is_finished(table.graph)
    finish_own_graph(table)
    assert is_finished(table.graph)
    assert charges(several.root / "bank" / "own.sqlite") == 3


def test_the_own_graph_is_stopped_before_it_returns_what_it_has_reserved(
    several: "Several", start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    several.write_multi_party_config(own="")
    table = several.table()
    assert table.graph is not None
    own = table.graph.party.ledger

    def stopped(ledger: Ledger, *, run: str) -> bool:
        if ledger.path == own:
            raise VesperError("stopped")
        return return_unused(ledger, run=run)

    with monkeypatch.context() as patched:
        patched.setattr("vesper.deployment.data_process.return_unused", stopped)
        others = start()
        with pytest.raises(VesperError, match="stopped"):
            run_label_party_with_peers(table)
    for each in others.values():
        each.result(LIMIT)
    with closing(Ledger(own, clock=lambda: 0.0)) as ledger:
        assert open_runs(ledger)
        finish_own_graph(table)
        assert not open_runs(ledger)
