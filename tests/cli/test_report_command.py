"""`vesper report`: a page about a run folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.fixture
def folders(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """A ring of 60 nodes, two classes."""
    ids = np.arange(60)
    splits = ["train"] * 30 + ["val"] * 15 + ["test"] * 15
    return write_folders(
        tmp_path / "folders",
        nodes={"id": ids, "x": ids % 7 * 1.0},
        edges={"src": ids, "dst": (ids + 2) % 60},
        labels={"id": ids, "label": ids % 2, "split": splits},
    )


def test_a_page_about_a_run(terminal: "Terminal", folders: Path, tmp_path: Path) -> None:
    run, page = tmp_path / "run", tmp_path / "page.html"
    arguments = ["--data", folders, "--out", run, "--set", "epochs=1", "--seed", 3]
    assert terminal.run("simulate", *arguments) == 0
    assert terminal.run("report", run, "--out", page) == 0
    assert "Not private" in terminal.out
    text = page.read_text()
    assert "What the graph adds" in text
    assert "gaussian release" in text
    for words in ("Run <b>run</b>, data <b>folders</b>, started", "ROC curve", "Confusion matrix"):
        assert words in text
    assert terminal.run("report", run, "--out", page, "--json") == 0
    assert json.loads(terminal.out) == {"report": str(page), "is_private": False, "simulated": True}


def test_folders_that_are_not_runs(terminal: "Terminal", tmp_path: Path) -> None:
    assert terminal.run("report", tmp_path, "--out", tmp_path / "page.html") == 2
    assert "expected a run folder with config.json" in terminal.err
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "result.json").write_text("{")
    assert terminal.run("report", tmp_path, "--out", tmp_path / "page.html") == 2
    assert "not readable as JSON" in terminal.err
    (tmp_path / "result.json").write_text("{}")
    assert terminal.run("report", tmp_path, "--out", tmp_path / "page.html") == 2
    assert "expected a run folder of this version" in terminal.err
    assert not (tmp_path / "page.html").exists()


def test_a_registry_record(terminal: "Terminal", folders: Path, tmp_path: Path) -> None:
    run, record = tmp_path / "run", tmp_path / "record.json"
    arguments = ["--data", folders, "--out", run, "--set", "epochs=1", "--seed", 3]
    assert terminal.run("simulate", *arguments) == 0
    assert terminal.run("report", run, "--registry", record, "--curator", "Bank") == 0
    facts = json.loads(record.read_text())["deployment"]
    assert facts["basic"]["data_curators"][0]["data_curator_name"] == "Bank"
    assert facts["privacy_loss"]["privacy_parameters"]["epsilon"] is None, "it was a simulation"
    assert terminal.run("report", run) == 2
    assert "--out, --registry: expected at least one" in terminal.err
    assert terminal.run("report", run, "--out", tmp_path / "a.html", "--name", "x") == 2
    assert "--name: expected only with --registry" in terminal.err


def test_charges_come_from_the_ledger_that_the_run_was_charged_to(
    terminal: "Terminal", folders: Path, tmp_path: Path
) -> None:
    run, page, ledger = tmp_path / "run", tmp_path / "page.html", tmp_path / "all.sqlite"
    arguments = ["--data", folders, "--out", run, "--set", "epochs=1", "--ledger", ledger]
    assert terminal.run("simulate", *arguments) == 0
    assert terminal.run("report", run, "--out", page) == 0
    assert "Budget of this run" in page.read_text()
    assert terminal.run("budget", "show", ledger, "--json") == 0
    charges = json.loads(terminal.out)["charges"]
    releases = sum(charge["charges"] for charge in charges)
    assert f"Releases of this run</th><td>{releases}<" in page.read_text()
