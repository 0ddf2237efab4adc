"""`vesper runs` and `vesper compare` on simulated runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.fixture
def three_runs(tmp_path: Path, write_folders: Callable[..., Path], terminal: "Terminal") -> Path:
    """Runs `a` (epsilon 1) and `b` (epsilon 4), and `mlp`, in one folder."""
    ids = np.arange(60)
    splits = ["train"] * 30 + ["val"] * 15 + ["test"] * 15
    data = write_folders(
        tmp_path / "folders",
        nodes={"id": ids, "x": ids % 7 * 1.0},
        edges={"src": ids, "dst": (ids + 2) % 60},
        labels={"id": ids, "label": ids % 2, "split": splits},
    )
    for name, method, epsilon in (("a", "certified", 1), ("b", "certified", 4), ("mlp", "mlp", 4)):
        arguments = ["--data", data, "--out", tmp_path / "runs" / name, "--method", method]
        assert terminal.run("simulate", *arguments, "--epsilon", epsilon, "--set", "epochs=1") == 0
    return tmp_path / "runs"


def test_runs_are_listed_and_compared(
    terminal: "Terminal", three_runs: Path, tmp_path: Path
) -> None:
    assert terminal.run("runs", three_runs) == 0
    assert [line.split()[0] for line in terminal.out.splitlines()[2:]] == ["a", "b", "mlp"]
    assert terminal.run("runs", three_runs, "--json", "--html", tmp_path / "runs.html") == 0
    first, second, third = json.loads(terminal.out)
    assert (first["epsilon"], second["epsilon"]) == (1.0, 4.0)
    assert (first["guarantee"], third["guarantee"]) == ("simulated noise", "no edge is read")
    assert first["data"] == "folders"
    assert first["test"] is not None
    page = (tmp_path / "runs.html").read_text()
    assert "Epsilon and utility" in page
    assert str(tmp_path) not in page

    folders = [three_runs / name for name in ("a", "b", "mlp")]
    assert terminal.run("compare", *folders) == 0
    assert "settings that differ" in terminal.out
    assert terminal.run("compare", *folders, "--json", "--html", tmp_path / "both.html") == 0
    facts = json.loads(terminal.out)
    assert facts["differing_settings"]["epsilon"] == {"a": 1.0, "b": 4.0, "mlp": 4.0}
    assert set(facts["differing_settings"]) >= {"epsilon", "method"}
    assert facts["runs"][0]["charges"]
    assert not facts["runs"][2]["charges"]
    page = (tmp_path / "both.html").read_text()
    for words in ("Epsilon and utility", "Settings that differ", "gaussian release", "download="):
        assert words in page
    assert str(tmp_path) not in page


def test_what_cannot_be_compared(terminal: "Terminal", three_runs: Path, tmp_path: Path) -> None:
    a = three_runs / "a"
    assert terminal.run("compare", a) == 2
    assert "expected two or more run folders to compare, got 1" in terminal.err
    assert terminal.run("compare", a, three_runs / "b", a) == 2
    assert "got this one twice" in terminal.err
    assert terminal.run("compare", a, tmp_path) == 2
    assert "expected a run folder" in terminal.err


def test_a_folder_without_runs(terminal: "Terminal", tmp_path: Path) -> None:
    assert terminal.run("runs", tmp_path) == 0
    assert "no runs here" in terminal.out
    assert terminal.run("runs", tmp_path, "--json") == 0
    assert json.loads(terminal.out) == []
    assert terminal.run("runs", tmp_path / "missing") == 2
