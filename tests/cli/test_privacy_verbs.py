"""`vesper plan`, `vesper degrees`, `vesper budget`."""

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.privacy.events import PureRelease

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ring of 400 nodes, and ten without a neighbour."""
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"id": range(410), "f": [0.0] * 410}), data / "nodes.parquet")
    edges = {"src": range(400), "dst": [(k + 1) % 400 for k in range(400)]}
    pq.write_table(pa.table(edges), data / "edges.parquet")
    return tmp_path


def test_plan_both_ways(terminal: "Terminal") -> None:
    assert terminal.run("plan", "--epsilon", 1, "--delta", "1e-6", "--hops", 2, "--json") == 0
    facts = json.loads(terminal.out)
    assert 0.999 <= facts["certified"]["epsilon"] <= 1
    noise = facts["certified"]["noise_std"]
    assert terminal.run("plan", "--noise-std", noise, "--delta", "1e-6", "--hops", 2, "--json") == 0
    assert json.loads(terminal.out)["certified"] == facts["certified"]
    assert terminal.run("plan", "--epsilon", 1, "--train-nodes", 1000, "--nodes", 5000) == 0
    assert "The paper's plan would claim" in terminal.out
    assert "On the wire" in terminal.out


def test_plan_wants_one_of_two(terminal: "Terminal") -> None:
    assert terminal.run("plan") == 2
    assert terminal.run("plan", "--epsilon", 1, "--noise-std", 2) == 2
    assert "either --epsilon or --noise-std" in terminal.err
    assert terminal.run("plan", "--epsilon", 0) == 2


def test_plan_reproduces_the_paper(terminal: "Terminal") -> None:
    assert terminal.run("plan", "--reproduce-paper", "--json") == 0
    rows = json.loads(terminal.out)
    assert len(rows) == 3 * 2 * 6
    assert set(rows[0]) == {
        "dataset",
        "layers",
        "claimed_epsilon",
        "paper_noise_std",
        "certified_noise_std",
        "true_epsilon_lower_bound",
    }
    assert terminal.run("plan", "--reproduce-paper") == 0
    assert "true, at least" in terminal.out


def test_degrees_are_charged_and_drawn(terminal: "Terminal", folder: Path) -> None:
    assert terminal.run("degrees", folder, "--epsilon", 5, "--json") == 0
    facts = json.loads(terminal.out)
    assert len(facts["counts"]) == 51
    assert facts["spent_epsilon"] == 5
    assert abs(facts["counts"][2] - 400) < 20
    assert terminal.run("degrees", folder, "--epsilon", 1) == 0
    assert ">= 50" in terminal.out
    assert "sparse" in terminal.out
    ledger = folder / "data" / "ledger.sqlite"
    assert terminal.run("budget", "show", ledger, "--json") == 0
    shown = json.loads(terminal.out)["graphs"][0]
    assert shown["releases"] == 2
    assert shown["spent_epsilon"] == pytest.approx(6)
    assert shown["spent_mu_squared"] == pytest.approx(
        sum(PureRelease(epsilon=e, what="").cost for e in (5.0, 1.0)) / 2**40
    )


def test_degrees_as_in_the_paper_cost_twice(terminal: "Terminal", folder: Path) -> None:
    assert terminal.run("degrees", folder, "--epsilon", 1, "--as-paper") == 0
    assert "this cost epsilon 2" in terminal.out
    assert terminal.run("degrees", folder, "--epsilon", 1, "--as-paper", "--json") == 0
    assert json.loads(terminal.out)["total_spent_epsilon"] == pytest.approx(4)


def test_budget_of_a_run_and_tampering(terminal: "Terminal", folder: Path) -> None:
    labels = {
        "id": range(400),
        "label": [0, 1] * 200,
        "split": ["train", "train", "val", "test"] * 100,
    }
    (folder / "label").mkdir()
    pq.write_table(pa.table(labels), folder / "label" / "labels.parquet")
    run = folder / "run"
    arguments = ("simulate", "--data", folder, "--out", run, "--epsilon", 3, "--set", "epochs=1")
    assert terminal.run(*arguments) == 0
    ledger = run / "ledger.sqlite"
    assert terminal.run("budget", "show", ledger) == 0
    assert terminal.run("budget", "show", ledger, "--noise-std", 1000, "--json") == 0
    shown = json.loads(terminal.out)
    assert shown["graphs"][0]["epsilon"] == 3
    assert 0.99 * 3 <= shown["graphs"][0]["spent_epsilon"] <= 3
    assert shown["graphs"][0]["releases_left"] == 0
    assert terminal.run("budget", "verify", ledger, "--head", shown["head"], "--json") == 0
    assert json.loads(terminal.out)["valid"] is True
    assert terminal.run("budget", "verify", ledger, "--head", "00") == 1
    assert "not in it" in terminal.err

    database = sqlite3.connect(ledger)
    database.execute("DROP TRIGGER entries_stay")
    database.execute("UPDATE entries SET cost = 1 WHERE sequence = 4")
    database.commit()
    database.close()
    assert terminal.run("budget", "verify", ledger) == 1
    assert "entry 4 does not fit the chain" in terminal.err
    assert terminal.run("budget", "show", folder / "none.sqlite") == 2
