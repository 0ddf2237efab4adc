"""`vesper preflight`: one line per check, one exit code for all."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal
    from tests.conftest import Institutions


def test_a_problem_and_its_fix(terminal: "Terminal", institutions: "Institutions") -> None:
    data = institutions.settings[0]
    assert terminal.run("preflight", "--config", data) == 2
    lines = terminal.out.splitlines()
    assert lines[0].startswith("PASSED  versions    vesper ")
    assert lines[-1] == "FAILED: contract"
    (problem,) = [line for line in lines if line.startswith("FAILED  contract")]
    assert "--approve" in problem
    assert terminal.run("contract", "--config", data, "--approve") == 0
    assert terminal.run("preflight", "--config", data) == 0
    assert terminal.out.splitlines()[-1] == "PASSED"


def test_json(terminal: "Terminal", institutions: "Institutions") -> None:
    assert terminal.run("preflight", "--config", institutions.settings[1], "--json") == 2
    shown = json.loads(terminal.out)
    assert shown["passed"] is False
    outcomes = {check["name"]: check["outcome"] for check in shown["checks"]}
    assert (outcomes["files"], outcomes["peer"]) == ("PASSED", "FAILED")
