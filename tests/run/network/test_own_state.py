"""Whose session is whose: who has only greeted goes on, who is in the middle is told."""

from typing import TYPE_CHECKING

import pytest

from vesper.errors import PeerError

if TYPE_CHECKING:
    from tests.run.network.conftest import Both


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

    for side in both.run(data, label, progress=stop):
        side.exception()
    name = (label.party.state / "session").read_bytes()
    both.change('state = "state"', 'state = "new"')
    new, _ = both.configs()
    for side in both.run(new, label, of_label={"resume": True}):
        with pytest.raises(PeerError, match=r"one of the two has begun anew"):
            side.result()
    assert (label.party.state / "session").read_bytes() == name
    assert not (new.party.state / "session").exists()  # nothing had begun there
    for side in both.run(data, label, resume=True, of_label={"resume": True}):
        side.result()
    assert both.charged(data) == 3
