"""The record of an absent party survives restarts."""

from pathlib import Path

import pytest

from vesper.errors import VesperError
from vesper.session.peer_group import Absence


def test_an_absence_covers_its_first_step_and_later_ones(tmp_path: Path) -> None:
    absence = Absence(tmp_path / "left")
    assert not absence.covers(10**9)
    absence.start(7)
    assert [absence.covers(step) for step in (6, 7, 8)] == [False, True, True]
    again = Absence(tmp_path / "left")
    assert [again.covers(step) for step in (6, 7, 8)] == [False, True, True]


def test_without_a_file() -> None:
    absence = Absence()
    absence.start(2)
    assert (absence.covers(1), absence.covers(2)) == (False, True)


@pytest.mark.parametrize("content", ["", "seven", "1.5"])
def test_a_file_that_is_not_a_number(tmp_path: Path, content: str) -> None:
    (tmp_path / "left").write_text(content)
    with pytest.raises(VesperError, match="restore it, or begin a new run"):
        Absence(tmp_path / "left")


def test_an_absence_that_cannot_be_stored_does_not_start(tmp_path: Path) -> None:
    absence = Absence(tmp_path / "nowhere" / "left")
    with pytest.raises(VesperError, match="cannot be written"):
        absence.start(3)
    assert not absence.covers(3)
