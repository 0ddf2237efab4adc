"""What was synced survives a power loss, what was not may be lost, and names change in order."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from chaos.power_loss import RecordedDisk
from chaos.processes import compile_shim

PROGRAM = """
import ctypes, os, sqlite3, sys
from contextlib import closing
folder, journal = sys.argv[1:3]
assert ctypes.CDLL(None).chaos_arm(folder.encode(), journal.encode(), int(sys.argv[3])) == 0
os.chdir(folder)

def write(name, text, sync):
    with open(name, "w") as file:
        file.write(text)
        file.flush()
        if sync:
            os.fsync(file.fileno())
"""

Recorded = Callable[[str], RecordedDisk]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """Run lines of a program below a folder that is watched."""
    shim = compile_shim(tmp_path)
    if shim is None:
        pytest.skip("needs a C compiler (cc) on Linux")
    folder, journal = tmp_path / "disk", tmp_path / "journal"
    folder.mkdir()
    (folder / "before").write_text("old")

    def run(lines: str, full_at: int = -1) -> RecordedDisk:
        disk = RecordedDisk(folder, journal)
        subprocess.run(
            [sys.executable, "-c", PROGRAM + lines, folder, journal, str(full_at)],
            env={**os.environ, "LD_PRELOAD": str(shim)},
            check=True,
        )
        return disk

    return run


def contents(disk: RecordedDisk) -> dict[str, str]:
    return {path.name: path.read_text() for path in disk.folder.iterdir()}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_synced_survives(recorded: Recorded, seed: int) -> None:
    disk = recorded("write('kept', 'new', True); write('before', 'new', True)")
    disk.lose_power(Random(seed))
    assert contents(disk) == {"kept": "new", "before": "new"}


def test_what_is_not_synced_is_lost_or_whole(recorded: Recorded) -> None:
    seen = set()
    for seed in range(12):
        disk = recorded("write('before', 'old', True); write('before', 'new', False)")
        disk.lose_power(Random(seed))
        seen.add(contents(disk)["before"])
    assert seen == {"old", "new"}


@pytest.mark.parametrize("seed", range(5))
def test_a_renamed_file_is_the_old_one_or_the_new_one(recorded: Recorded, seed: int) -> None:
    disk = recorded("write('partial', 'new', True); os.replace('partial', 'before')")
    disk.lose_power(Random(seed))
    found = contents(disk)
    assert found in ({"before": "new"}, {"before": "old", "partial": "new"})


def test_a_committed_transaction_survives(recorded: Recorded) -> None:
    disk = recorded(
        "db = sqlite3.connect('a.sqlite', isolation_level=None)\n"
        "db.execute('PRAGMA journal_mode = WAL'); db.execute('PRAGMA synchronous = FULL')\n"
        "db.execute('CREATE TABLE t (x)'); db.execute('INSERT INTO t VALUES (7)'); os._exit(0)"
    )
    disk.lose_power(Random(1))
    read = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('SELECT x FROM t'))"
    done = subprocess.run(
        [sys.executable, "-c", read, disk.folder / "a.sqlite"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "(7,)\n"


def test_a_full_disk_stays_full(recorded: Callable[..., RecordedDisk]) -> None:
    recorded(
        "import errno\n"
        "write('fits', 'x', False)\n"
        "for name in ('first', 'second'):\n"
        "    try:\n"
        "        write(name, 'x', False)\n"
        "    except OSError as error:\n"
        "        assert error.errno == errno.ENOSPC\n"
        "    else:\n"
        "        raise SystemExit('expected a full disk')\n",
        full_at=2,
    )
