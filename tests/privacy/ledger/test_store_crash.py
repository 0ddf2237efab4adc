"""kill -9 at any instant: the ledger never lists less than what left the machine.

A child process charges and sends one byte per release until it is killed, at random instants and
before every single statement that it gives to SQLite. Then the parent counts.
"""

import math
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.store import Ledger

CHILD = """
import os, sqlite3, sys
from pathlib import Path
from vesper.privacy.ledger.account import open_account
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.store import key_of
from vesper.privacy.ledger.store import Ledger

path, die_at, noise_std = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])

class Mortal:
    '''A connection that kills its process before statement number `die_at`.'''
    def __init__(self, connection):
        self.connection, self.count = connection, 0
    def execute(self, *arguments):
        self.count += 1
        if self.count == die_at:
            os.kill(os.getpid(), 9)
        return self.connection.execute(*arguments)
    def __getattr__(self, name):
        return getattr(self.connection, name)

connect = sqlite3.connect
if die_at:
    sqlite3.connect = lambda *args, **options: Mortal(connect(*args, **options))
ledger = Ledger(path, clock=lambda: 0.0)
key_of(ledger)
account = open_account(ledger, "g", num_nodes=3, budget=Budget(epsilon=8.0, delta=1e-6))
event = GaussianRelease(noise_std=noise_std)
os.write(1, b"!")
for _ in range(4 if die_at else 1_000_000):
    account.charge(event, None, run="r")
    os.write(1, b".")
"""


def releases_in(path: Path) -> int:
    """Number of releases in the ledger; also checks the chain and the sums."""
    ledger = Ledger(path, clock=lambda: 0.0)  # completes a half-created ledger, including its key
    assert ledger.verify() is None
    opened = accounts(ledger)
    if not opened:
        return 0
    releases = [e for e in ledger.entries() if e.facts["kind"] == "gaussian release"]
    assert opened[0].releases == len(releases)
    total = math.fsum(entry.cost for entry in releases)
    assert opened[0].spent_mu_squared == pytest.approx(total, rel=1e-12)
    assert opened[0].spent.min() == opened[0].spent.max()
    ledger.close()
    return len(releases)


def start(path: Path, die_at: int, noise_std: float = 50.0) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", CHILD, str(path), str(die_at), str(noise_std)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def kill_before_statements(tmp_path: Path, deaths: range) -> None:
    path = tmp_path / "ledger.sqlite"
    before, died = 0, 0
    for die_at in deaths:
        with start(path, die_at) as child:
            assert child.stdout is not None
            sent = child.stdout.read().count(b".")
        died += child.returncode == -signal.SIGKILL
        after = releases_in(path)
        assert before + sent <= after <= before + sent + 1
        before = after
    assert died >= 0.6 * len(deaths), "too few children were killed"
    assert before > 40


def test_killed_before_every_third_statement(tmp_path: Path) -> None:
    kill_before_statements(tmp_path, range(1, 81, 3))


@pytest.mark.nightly
def test_killed_before_every_statement(tmp_path: Path) -> None:
    kill_before_statements(tmp_path, range(1, 81))


def kill_at_random(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "ledger.sqlite"
    rng = random.Random(0)
    before = 0
    for _ in range(kills):
        with start(path, 0) as child:
            assert child.stdout is not None
            output = child.stdout.read(1)
            time.sleep(rng.random() * 0.03)
            child.kill()
            output += child.stdout.read()
        after = releases_in(path)
        assert before + output.count(b".") <= after <= before + output.count(b".") + 1
        before = after
    assert before > kills


def test_killed_at_random_instants(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 25)


def test_two_processes_charge_and_both_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    rng = random.Random(1)
    before = 0
    for _ in range(6):
        output = b""
        with start(path, 0) as one, start(path, 0) as other:
            for child in (one, other):
                assert child.stdout is not None
                output += child.stdout.read(1)  # both are charging from here on
            for child in (one, other):
                assert child.stdout is not None
                time.sleep(rng.random() * 0.05)
                child.kill()
                output += child.stdout.read()
        assert output.count(b"!") == 2
        after = releases_in(path)
        assert before + output.count(b".") <= after <= before + output.count(b".") + 2
        before = after
    assert before > 12


@pytest.mark.nightly
def test_killed_at_hundreds_of_random_instants(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 500)


def test_runs_in_several_processes_cannot_overspend_together(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    children = [start(path, 0, noise_std=12.0) for _ in range(3)]
    sent = 0
    for child in children:
        with child:
            assert child.stdout is not None
            sent += child.stdout.read().count(b".")  # each stops when the budget is gone
        assert child.returncode == 1
    assert releases_in(path) == sent
    account = accounts(Ledger(path, clock=lambda: 0.0))[0]
    assert account.fits(GaussianRelease(noise_std=12.0)) == 0
