"""`vesper audit` on the command line."""

import json

import pytest
from typer.testing import CliRunner

from vesper.cli.app import app


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_json_field_names() -> None:
    facts = json.loads(run("--method", "certified", "--epsilon", "4", "--trials", "4", "--json"))
    names = ["epsilon_lower_bound", "confidence", "claimed_epsilon", "certified_epsilon", "verdict"]
    assert set(names) <= set(facts)
    assert (facts["certified_epsilon"], facts["confidence"]) == (4.0, 0.95)
    assert facts["verdict"] == "not refuted"


def test_the_table_and_its_explanation() -> None:
    output = run("--method", "certified", "--epsilon", "inf", "--claim", "2", "--trials", "5")
    assert "refuted" in output
    assert "exact likelihood ratio of the releases; assumes Gaussian noise" in output


@pytest.mark.parametrize("option", [["--trials", "1"], ["--probe", "x"], ["--method", "x"]])
def test_wrong_input_ends_with_exit_code_2(option: list[str]) -> None:
    done = CliRunner().invoke(app, ["audit", *option])
    assert done.exception is not None
    assert getattr(done.exception, "exit_code", None) == 2
