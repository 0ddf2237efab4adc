"""`vesper budget show`, `vesper budget verify`."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.gaussian import epsilon_of
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.reservation import Reservation
from vesper.privacy.ledger.store import Ledger

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A graph with a histogram and three of five releases, and its key."""
    path = tmp_path / "ledger.sqlite"
    opened = Ledger(path, clock=lambda: 0.0)
    account = open_account(opened, "graph-one", num_nodes=9, budget=Budget(epsilon=2.0, delta=1e-6))
    account.charge(PureRelease(epsilon=0.5, what="degree histogram"), None, run="degrees")
    event = GaussianRelease(noise_std=account.noise_std_for(releases=5))
    for _ in range(2):
        account.charge(event, None, run="first")
    account.charge(event, np.arange(4), run="second")
    opened.close()
    return path


def test_secretflow_every_charge_is_shown(terminal: "Terminal", ledger: Path) -> None:
    assert terminal.run("budget", "show", ledger, "--json") == 0
    facts = json.loads(terminal.out)
    shown = [(c["run"], c["charges"], c["nodes"], c["first_entry"]) for c in facts["charges"]]
    assert shown == [("degrees", 1, 9, 4), ("first", 2, 9, 5), ("second", 1, 4, 7)]
    assert sum(c["charges"] for c in facts["charges"]) == facts["graphs"][0]["releases"] == 4
    assert terminal.run("budget", "show", ledger) == 0
    for word in ("degree histogram, epsilon 0.5", "gaussian release", "first", "second"):
        assert word in terminal.out


def test_the_sum_of_counts_and_releases_is_explained(terminal: "Terminal", ledger: Path) -> None:
    assert terminal.run("budget", "show", ledger, "--json") == 0
    spent = json.loads(terminal.out)["graphs"][0]["spent_epsilon"]
    assert terminal.run("budget", "show", ledger) == 0
    explained = f"epsilon {spent:.4g} spent = 0.5 for counts and {spent - 0.5:.4g} for everything"
    assert explained in " ".join(terminal.out.split())


def test_use_without_a_guarantee_is_shown(terminal: "Terminal", ledger: Path) -> None:
    opened = Ledger(ledger, clock=lambda: 0.0)
    account = open_account(opened, "graph-one", num_nodes=9)
    account.reserve(Reservation(plan="none"), run="raw")
    account.note_unprotected(run="raw", plan="none")
    opened.close()
    assert terminal.run("budget", "show", ledger, "--json") == 0
    facts = json.loads(terminal.out)
    assert facts["graphs"][0]["unprotected_by"] == "raw"
    assert (facts["graphs"][0]["spent_epsilon"], facts["graphs"][0]["releases_left"]) == ("inf", 0)
    assert facts["charges"][-1]["what"] == "unprotected, plan none"
    assert terminal.run("budget", "show", ledger) == 0
    assert "WITHOUT A GUARANTEE by run raw" in " ".join(terminal.out.split())


def test_show_reports_what_is_left(terminal: "Terminal", ledger: Path) -> None:
    assert terminal.run("budget", "show", ledger, "--json") == 0
    row = json.loads(terminal.out)["graphs"][0]
    assert row["releases_left"] == 2
    left = epsilon_of(mu=math.sqrt(2 * row["left_mu_squared"]), delta=1e-6)
    assert row["left_epsilon"] == pytest.approx(left)
    assert row["left_epsilon"] > 1.1 * (2 - row["spent_epsilon"])
    assert terminal.run("budget", "show", ledger, "--noise-std", 1000, "--json") == 0
    assert json.loads(terminal.out)["graphs"][0]["releases_left"] > 1000


@pytest.mark.parametrize("noise_std", ["0", "-1", "nan", "inf"])
def test_show_refuses_invalid_noise(terminal: "Terminal", ledger: Path, noise_std: str) -> None:
    assert terminal.run("budget", "show", ledger, "--noise-std", noise_std) == 2
    assert "noise_std" in terminal.err


def test_tables_in_a_pipe_are_plain(terminal: "Terminal", ledger: Path) -> None:
    assert terminal.run("budget", "show", ledger) == 0
    assert terminal.out.isascii()
    lines = terminal.out.splitlines()
    assert lines[1].split()[:4] == ["graph", "epsilon", "spent", "reserved"]
    assert lines[2].split()[:2] == ["graph-one", "2"]
    assert not any(set(line) & set("+|") for line in lines)


def test_a_closed_pipe_is_not_an_error(ledger: Path) -> None:
    for verb in (["show"], ["show", "--json"], ["verify"]):
        command = [sys.executable, "-m", "vesper", "budget", verb[0], str(ledger), *verb[1:]]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            child.stdout.close()  # before anything is written, as the fastest `head` would
            assert child.stderr.read() == ""
        assert child.returncode == 0


def test_verify_accepts_the_head_that_show_prints(terminal: "Terminal", ledger: Path) -> None:
    assert terminal.run("budget", "show", ledger) == 0
    head = terminal.out.splitlines()[-1].split()[1]
    assert terminal.run("budget", "verify", ledger, "--head", head) == 0
    assert "the chain is intact" in terminal.out
    wrong = f"{head.split(':')[0]}:{'0' * 16}"
    assert terminal.run("budget", "verify", ledger, "--head", wrong) == 1
    assert "older copy" in terminal.err
    assert terminal.run("budget", "verify", ledger, "--head", "00") == 2
    assert "SEQUENCE:DIGEST" in terminal.err


def test_a_noted_head_detects_an_older_copy_of_everything(
    terminal: "Terminal", ledger: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (
        ledger,
        ledger.with_name("ledger.sqlite.key"),
        ledger.with_name("ledger.sqlite.head"),
    ):
        shutil.copy(path, copy)
    opened = Ledger(ledger, clock=lambda: 0.0)
    account = open_account(opened, "graph-one", num_nodes=9)
    account.charge(GaussianRelease(noise_std=1000.0), None, run="late")
    opened.close()
    assert terminal.run("budget", "show", ledger, "--json") == 0
    head = json.loads(terminal.out)["head"]
    assert terminal.run("budget", "verify", ledger, "--head", head, "--json") == 0
    assert json.loads(terminal.out)["contains_given_head"] is True
    assert terminal.run("budget", "verify", copy / "ledger.sqlite") == 0
    assert terminal.run("budget", "verify", copy / "ledger.sqlite", "--head", head, "--json") == 1
    assert json.loads(terminal.out)["valid"] is False


def test_without_the_key_show_works_and_verify_refuses(
    terminal: "Terminal", ledger: Path, tmp_path: Path
) -> None:
    key = ledger.with_name("ledger.sqlite.key").rename(tmp_path / "safe.key")
    assert terminal.run("budget", "show", ledger) == 0
    assert terminal.run("budget", "verify", ledger) == 2
    assert "changes cannot be detected without it" in terminal.err
    assert terminal.run("budget", "verify", ledger, "--key", key) == 0
    key.write_bytes(bytes(32))
    assert terminal.run("budget", "verify", ledger, "--key", key) == 1
    assert "or this is not its key" in terminal.err


@pytest.mark.parametrize(
    ("statement", "values", "message"),
    [
        ("UPDATE entries SET facts = ? WHERE sequence = 5", ("{",), "entry 5: expected facts"),
        ("DELETE FROM entries WHERE sequence = ?", (2,), "no entry introduces"),
        ("UPDATE entries SET facts = ? WHERE sequence = 3", ('{"kind": "budget"}',), "a budget"),
        (
            "UPDATE entries SET receivers = ? WHERE sequence = 5",
            (b"?",),
            "was not written by vesper",
        ),
        ("UPDATE entries SET cost = ? WHERE sequence = 5", (1e9,), "was not written by vesper"),
        ("DROP TABLE head", (), "cannot be read as a ledger"),
        ("DROP TABLE entries", (), "cannot be read as a ledger"),
    ],
)
def test_damaged_ledgers_end_with_one_message(
    terminal: "Terminal",
    ledger: Path,
    tamper: Callable[..., None],
    statement: str,
    values: tuple[object, ...],
    message: str,
) -> None:
    tamper(ledger, statement, *values)
    assert terminal.run("budget", "show", ledger) == 2
    assert message in terminal.err
    assert terminal.run("budget", "verify", ledger) in (1, 2)


def test_files_that_are_not_ledgers_end_with_one_message(
    terminal: "Terminal", tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello" * 100)
    (tmp_path / "cut").write_bytes(b"SQLite format 3\0" + bytes(50))
    for name in ("empty", "text", "cut", "missing", "."):
        for verb in ("show", "verify"):
            assert terminal.run("budget", verb, tmp_path / name) == 2
            assert len(terminal.err.splitlines()) == 1


def test_budget_of_a_run_and_tampering(
    terminal: "Terminal",
    ring: Path,
    write_folders: Callable[..., Path],
    tamper: Callable[..., None],
) -> None:
    labels = {
        "id": range(400),
        "label": [0, 0, 0, 0, 1, 1, 1, 1] * 50,
        "split": ["train", "train", "val", "test"] * 100,
    }
    write_folders(ring, labels=labels)
    run = ring / "run"
    arguments = ("simulate", "--data", ring, "--out", run, "--epsilon", 3, "--set", "epochs=1")
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

    tamper(ledger, "UPDATE entries SET cost = 0.5 WHERE sequence = 4")
    assert terminal.run("budget", "verify", ledger) == 1
    assert "entry 4 does not fit the chain" in terminal.err
    assert terminal.run("budget", "show", ring / "none.sqlite") == 2
