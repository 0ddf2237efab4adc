"""Names tell runs apart, and are never paths on this machine."""

from pathlib import Path

from vesper.report.run_naming import distinct_names, run_name


def test_a_state_folder_is_named_after_its_party() -> None:
    assert run_name(Path("/somewhere/bank/state")) == "bank"
    assert run_name(Path("/somewhere/bank/state/result")) == "bank"
    assert run_name(Path("/state")) == "state"


def test_equal_names_are_lengthened_until_they_differ() -> None:
    folders = [Path("/a/x/bank/state"), Path("/a/y/bank/state"), Path("/a/run")]
    assert distinct_names(folders) == ["x/bank/state", "y/bank/state", "run"]
