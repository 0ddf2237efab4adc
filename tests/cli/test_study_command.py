"""`vesper study` on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest

from vesper.cli.study_command import membership
from vesper.session.config import load_config

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

GRID = """
title = "Mine"
datasets = ["tiny"]
seeds = 1
[[grid]]
epsilon = 2
epochs = 1
width = 8
method = ["certified", "mlp"]
"""


@pytest.fixture
def grid(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """A grid, and next to it sets/tiny/ with party folders."""
    rng = np.random.default_rng(0)
    write_folders(
        tmp_path / "sets" / "tiny",
        nodes={"id": range(90), "f": rng.normal(size=90)},
        edges={"src": range(90), "dst": [(k + 2) % 90 for k in range(90)]},
        labels={
            "id": range(90),
            "label": [k % 2 for k in range(90)],
            "split": [("train", "val", "test")[k // 2 % 3] for k in range(90)],
        },
    )
    path = tmp_path / "mine.toml"
    path.write_text(GRID)
    return path


def test_run_table_and_figures(terminal: "Terminal", grid: Path, tmp_path: Path) -> None:
    out, given = tmp_path / "out", ["--data", tmp_path / "sets", "--workers", 1]
    assert terminal.run("study", "run", grid, "--out", out, *given) == 0
    assert "2 of 2" in terminal.err
    assert "tiny (data of the user): roc_auc" in terminal.out
    assert "certified" in terminal.out
    assert (out / "results.parquet").is_file()
    assert terminal.run("study", "table", out, "--json") == 0
    cells = {cell["series"]: cell for cell in json.loads(terminal.out)["cells"]}
    assert cells["mlp"]["epsilon"] == "inf"
    assert cells["certified"]["guarantee"] == "certified"
    assert 0 <= cells["certified"]["mean"] <= 100
    assert terminal.run("study", "table", out, "--markdown") == 0
    assert "| certified | certified |" in terminal.out
    assert terminal.run("study", "figures", out) == 0
    ElementTree.parse(out / "figures" / "mine.svg")
    assert terminal.run("study", "run", grid, "--out", out, *given, "--json") == 0
    assert json.loads(terminal.out)["failed"] == []
    assert "cells: 2 of 2" in terminal.err
    assert "left" not in terminal.err  # nothing was run again


def test_a_failed_cell_is_listed_and_the_exit_code_is_1(
    terminal: "Terminal", grid: Path, tmp_path: Path
) -> None:
    (tmp_path / "sets" / "tiny" / "label" / "labels.parquet").write_text("no table")
    out, data = tmp_path / "out", tmp_path / "sets"
    assert terminal.run("study", "run", grid, "--out", out, "--data", data, "--workers", 1) == 1
    assert "Missing: tiny, certified, epsilon 2, seed 0: InputError" in terminal.out
    assert "2 cells have no result" in terminal.err


def test_all_studies_are_listed(terminal: "Terminal") -> None:
    assert terminal.run("study", "list", "--json") == 0
    found = {row["study"]: row for row in json.loads(terminal.out)}
    assert found["table-1"]["cells"] == 2260
    assert found["table-1"]["cells_small"] < 200
    assert terminal.run("study", "list") == 0
    assert "Privacy-utility trade-off" in terminal.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "tabel-1", "--out", "x"], "did you mean 'table-1'"),
        (["run", "table-1", "--out", "x", "--seeds", "0"], "--seeds: expected 1 or more, got 0"),
        (["run", "table-1", "--out", "x", "--data", "nowhere"], "--data nowhere: expected"),
        (["run", "mine.toml", "--out", "x"], "unknown data set 'tiny'"),
        (["run", "table-1", "--out", "."], "found something else; choose another with --out"),
        (["table", "."], "expected the description of a study"),
        (["figures", "."], "expected the description of a study"),
    ],
)
def test_wrong_input_ends_with_one_message_and_exit_code_2(
    terminal: "Terminal",
    grid: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(grid.parent)
    assert terminal.run("study", *arguments) == 2
    assert message in terminal.err


def test_membership_runs_the_attack(grid: Path, tmp_path: Path) -> None:
    config = load_config(None, {"epochs": 1, "width": 8})
    measured = membership(config, tmp_path / "sets" / "tiny", tmp_path / "out")
    assert measured.plan == "certified"
    assert 0 <= (measured.test or -1) <= 100
