"""Every run below a folder is listed: finished, in progress, damaged."""

from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.report.run_list import UNREADABLE, find_runs, runs_table
from vesper.session.config import load_config
from vesper.session.journal import open_journal


def start_run(folder: Path) -> None:
    """Write the journal of a run that fails at once."""
    folder.mkdir(parents=True)
    with pytest.raises(InputError), open_journal(folder, side="both", config=load_config(None, {})):
        raise InputError("no")


def test_runs_are_found_at_any_depth_in_order(tmp_path: Path) -> None:
    start_run(tmp_path / "b" / "deep" / "run")
    start_run(tmp_path / "a")
    start_run(tmp_path / ".c.partial-1234")
    start_run(tmp_path / ".cache" / "run")
    (tmp_path / "other").mkdir()
    lines = find_runs(tmp_path)
    assert [(line.folder, line.name) for line in lines] == [
        (".c.partial-1234", "c"),
        ("a", "a"),
        ("b/deep/run", "run"),
    ]
    assert {line.state for line in lines} == {"failed"}
    assert {line.method for line in lines} == {"certified"}
    assert all((line.as_json()["date"] or "").endswith("UTC") for line in lines)


def test_a_damaged_run_hides_no_other(tmp_path: Path) -> None:
    start_run(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "result.json").write_text("{")
    bad, good = find_runs(tmp_path)
    assert (bad.state, good.state) == (UNREADABLE, "failed")
    assert "config.json" in (bad.problem or "")
    assert "<td" in runs_table([bad, good])


def test_a_party_that_has_not_started(tmp_path: Path) -> None:
    state = tmp_path / "bank" / "state"
    state.mkdir(parents=True)
    (state / "contract.json").write_text("{}")
    (line,) = find_runs(tmp_path)
    assert (line.name, line.state, line.date) == ("bank", "not started", None)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a folder with runs, found no such folder"):
        find_runs(tmp_path / "missing")
