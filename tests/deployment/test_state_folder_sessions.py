"""Whose session is whose: who has only greeted goes on, who is in the middle is told."""

import os
from typing import TYPE_CHECKING

import pytest
from tests.fixtures.observers import CallingObserver

from vesper.errors import PeerError

if TYPE_CHECKING:
    from tests.deployment.conftest import Both


def test_state_and_ledger_are_for_this_user_alone(both: "Both") -> None:
    before = os.umask(0)
    try:
        data, label = both.configs()
        for side in both.run(data, label):
            side.result()
    finally:
        os.umask(before)
    assert data.party.ledger is not None
    folders = [data.party.state, label.party.state, data.party.state / "releases"]
    files = [data.party.ledger, *data.party.state.glob("frames/*"), *label.party.state.glob("f*/*")]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_label_side_that_has_only_greeted_goes_on_with_a_data_side_that_began_anew(
    both: "Both",
) -> None:
    data, label = both.configs()
    (label.party.state / "session").write_bytes(b"of yesterday ...")  # killed after its greeting
    ours, theirs = both.run(data, label, of_label={"resume": True})
    assert ours.result().session == theirs.result().session
    assert ours.result().session != b"of yesterday ...".hex()


def test_a_label_side_in_the_middle_refuses_a_data_side_that_began_anew_and_keeps_its_own(
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
    new, _ = both.configs()
    for side in both.run(new, label, of_label={"resume": True}):
        with pytest.raises(PeerError, match=r"one of the two has started over"):
            side.result()
    assert (label.party.state / "session").read_bytes() == name
    assert not (new.party.state / "session").exists()  # nothing had begun there
    for side in both.run(data, label, resume=True, of_label={"resume": True}):
        side.result()
    assert both.charged(data) == 3
