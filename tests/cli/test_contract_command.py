"""`vesper contract`: shown, approved, and compared with the last approval."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal
    from tests.conftest import Institutions


def test_shown_then_approved_then_changed(
    terminal: "Terminal", institutions: "Institutions"
) -> None:
    data, label = institutions.settings
    assert terminal.run("contract", "--config", data) == 0
    assert "not approved by this party" in terminal.out
    assert "epsilon = 4.0" in terminal.out
    assert "delta = (chosen by the method)" in terminal.out
    assert "noise comes from the operating system" in terminal.out
    assert "seed" not in terminal.out, "an officer must not have to ask what it is for"
    shown = []
    for path in (data, label):
        assert terminal.run("contract", "--config", path, "--approve", "--json") == 0
        shown.append(json.loads(terminal.out))
    assert shown[0] == shown[1]
    assert shown[0]["approved"] is True
    institutions.change("epsilon = 4.0", "epsilon = 2.0")
    assert terminal.run("contract", "--config", data) == 0
    assert "changed: privacy.epsilon: 2.0 now, 4.0 approved" in terminal.out
    assert "not approved by this party" in terminal.out
    assert terminal.run("contract", "--config", data, "--approve") == 0
    assert "the peer must approve the same contract" in terminal.out


def test_a_misspelled_setting(terminal: "Terminal", institutions: "Institutions") -> None:
    institutions.change("epsilon = 4.0", "epsilom = 4.0")
    assert terminal.run("contract", "--config", institutions.settings[0], "--approve") == 2
    assert "unknown setting 'privacy.epsilom'; did you mean 'privacy.epsilon'?" in terminal.err
