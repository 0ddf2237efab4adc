"""`vesper audit`, as a person types it."""

import json

import pytest
from typer.testing import CliRunner

from vesper.cli.app import app


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_names_that_others_rely_on() -> None:
    found = json.loads(run("--method", "certified", "--epsilon", "4", "--trials", "4", "--json"))
    names = ["epsilon_lower_bound", "confidence", "claimed_epsilon", "certified_epsilon", "verdict"]
    assert set(names) <= set(found)
    assert (found["certified_epsilon"], found["confidence"]) == (4.0, 0.95)
    assert found["verdict"] == "not refuted"


def test_a_person_gets_a_table_and_a_sentence() -> None:
    shown = run("--method", "certified", "--epsilon", "inf", "--claim", "2", "--trials", "5")
    assert "refuted" in shown
    assert "exact likelihood ratio of the releases; assumes Gaussian noise" in shown


@pytest.mark.parametrize("option", [["--trials", "1"], ["--probe", "x"], ["--method", "x"]])
def test_mistakes_end_in_their_exit_code(option: list[str]) -> None:
    done = CliRunner().invoke(app, ["audit", *option])
    assert done.exception is not None
    assert getattr(done.exception, "exit_code", None) == 2
