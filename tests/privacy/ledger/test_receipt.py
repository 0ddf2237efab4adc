"""A receipt is valid once, in the process that charged, and is never made by hand."""

import copy
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from vesper.errors import BudgetError
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.receipt import Receipt

if TYPE_CHECKING:
    from tests.privacy.conftest import LedgerFolder

EVENT = GaussianRelease(noise_std=9.0)


def test_receipts_are_not_made_by_hand() -> None:
    with pytest.raises(BudgetError, match="not by hand"):
        Receipt(event=EVENT, receivers=b"A", graph="g", sequence=1, seal=None)


def test_receipts_cannot_be_copied(folder: "LedgerFolder") -> None:
    receipt = folder.account(None).charge(EVENT, None, run="r")
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="used twice"):
            duplicate(receipt)


FORK = """
import os, sys
from pathlib import Path
from vesper.errors import BudgetError
from vesper.privacy.ledger.account import open_account
from vesper.privacy.events import GaussianRelease
from vesper.privacy.ledger.store import Ledger

account = open_account(Ledger(Path(sys.argv[1]), clock=lambda: 0.0), "g", num_nodes=4)
event = GaussianRelease(noise_std=9.0)
receipt = account.charge(event, None, run="r")
child = os.fork()
try:
    receipt.spend(event=event, receivers=receipt.receivers, graph="g")
    answer = "spent"
except BudgetError:
    answer = "refused"
if child:
    os.waitpid(child, 0)
os.write(1, f"{'parent' if child else 'child'} {answer}\\n".encode())
os._exit(0)
"""


def test_a_receipt_is_not_valid_in_a_fork(folder: "LedgerFolder") -> None:
    done = subprocess.run(  # in a single-threaded process, which is safe to fork
        [sys.executable, "-W", "error", "-c", FORK, str(folder.path)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["child refused", "parent spent"], done.stderr
