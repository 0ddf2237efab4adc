"""A side that has only greeted joins a new session; one in the middle of a run refuses it."""

import os
from typing import TYPE_CHECKING

import pytest
from tests.fixtures.observers import CallingObserver

from vesper.errors import PeerError

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both


def test_only_this_user_can_read_state_and_ledger(both: "Both") -> None:
    before = os.umask(0)
    try:
        data, label = both.configs()
        for side in both.run(data, label):
            side.result()
    finally:
        os.umask(before)
    folders = [data.party.state, label.party.state, data.party.state / "releases"]
    files = [data.party.ledger, *data.party.state.glob("frames/*"), *label.party.state.glob("f*/*")]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_label_side_that_has_only_greeted_joins_a_new_session(
    both: "Both",
) -> None:
    data, label = both.configs()
    (label.party.state / "session").write_bytes(b"of yesterday ...")  # killed after its greeting
    ours, theirs = both.run(data, label, of_label={"resume": True})
    assert ours.result().session == theirs.result().session
    assert ours.result().session != b"of yesterday ...".hex()


def test_a_label_side_in_the_middle_of_a_run_refuses_a_new_session(
    both: "Both",
) -> None:
    data, label = both.configs()

    def stop(task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and done == 2:
            raise KeyboardInterrupt

    for side in both.run(data, label, observer=CallingObserver(progress=stop)):
        side.exception()
    name = (label.party.state / "session").read_bytes()
    both.change('state = "state"', 'state = "new"')
    both.change('graph = "payments"', 'graph = "new"')  # the old one is reserved for the run
    new, _ = both.configs()
    for side in both.run(new, label, of_label={"resume": True}):
        with pytest.raises(PeerError, match=r"one of the two has started over"):
            side.result()
    assert (label.party.state / "session").read_bytes() == name
    assert not (new.party.state / "session").exists()  # nothing had started there
    for side in both.run(data, label, resume=True, of_label={"resume": True}):
        side.result()
    assert both.charged(data) == 3
