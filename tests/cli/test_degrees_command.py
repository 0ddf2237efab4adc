"""`vesper degrees`: charging, drawing, and refusals before anything is charged."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


def test_degrees_are_charged_and_drawn(terminal: "Terminal", ring: Path) -> None:
    assert terminal.run("degrees", ring, "--epsilon", 5, "--json") == 0
    facts = json.loads(terminal.out)
    assert len(facts["counts"]) == 51
    assert facts["spent_epsilon"] == 5
    assert abs(facts["counts"][2] - 400) < 20
    assert terminal.run("degrees", ring, "--epsilon", 1) == 0
    assert ">= 50" in terminal.out
    assert "sparse" in terminal.out
    ledger = ring / "data" / "ledger.sqlite"
    assert terminal.run("budget", "show", ledger, "--json") == 0
    shown = json.loads(terminal.out)["graphs"][0]
    assert shown["releases"] == 2
    assert shown["spent_epsilon"] == shown["spent_pure_epsilon"] == 6
    assert shown["relation"] == "edge"


def test_degrees_fit_on_a_screen(terminal: "Terminal", ring: Path) -> None:
    assert terminal.run("degrees", ring, "--epsilon", 50) == 0
    lines = terminal.out.splitlines()
    assert len(lines) <= 25
    drawn = [line for line in lines if "█" in line or "#" in line]
    assert [line.split()[0] for line in drawn] == ["0", "2"]
    assert drawn[1].split()[1] == "400"
    assert any(line.split()[0] == "10-14" for line in lines)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1e9"])
def test_degrees_refuse_before_a_ledger_is_made(
    terminal: "Terminal", ring: Path, epsilon: str
) -> None:
    assert terminal.run("degrees", ring, "--epsilon", epsilon) == 2
    assert "nothing was charged" in terminal.err
    assert not (ring / "data" / "ledger.sqlite").exists()


def test_degrees_as_in_the_paper_cost_twice_the_epsilon(terminal: "Terminal", ring: Path) -> None:
    assert terminal.run("degrees", ring, "--epsilon", 1, "--as-paper") == 0
    assert "this cost epsilon 2" in terminal.out
    assert terminal.run("degrees", ring, "--epsilon", 1, "--as-paper", "--json") == 0
    assert json.loads(terminal.out)["total_spent_epsilon"] == pytest.approx(4)
