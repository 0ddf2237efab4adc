"""Notes of the head: never lowered, written under a lock, and a witness kept elsewhere."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import InputError, VesperError
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reader import format_head
from vesper.privacy.ledger.store import Ledger


def opened(folder: Path, *, witness: Path | None = None) -> Ledger:
    return Ledger(folder / "ledger.sqlite", clock=lambda: 0.0, witness=witness)


def append(ledger: Ledger) -> None:
    with ledger.transaction():
        facts = {"kind": "x"}
        ledger.append(graph="g", run="r", facts=facts, cost=0.0, encoded_receivers=b"A")


def noted(note: Path) -> int:
    return int(note.read_text().partition(":")[0])


WRITER = """
import sys
from pathlib import Path
from vesper.privacy.ledger.store import Ledger

ledger = Ledger(Path(sys.argv[1]), clock=lambda: 0.0, witness=Path(sys.argv[2]))
for _ in range(int(sys.argv[3])):
    with ledger.transaction():
        ledger.append(graph="g", run="r", facts={"kind": "x"}, cost=0.0, encoded_receivers=b"A")
"""


def test_two_processes_never_lower_a_note(tmp_path: Path) -> None:
    each, witness = 120, tmp_path / "witness"
    opened(tmp_path, witness=witness).close()
    notes = [tmp_path / "ledger.sqlite.head", witness]
    command = [sys.executable, "-c", WRITER, str(tmp_path / "ledger.sqlite"), str(witness)]
    processes = [subprocess.Popen([*command, str(each)]) for _ in range(2)]
    seen: dict[Path, list[int]] = {note: [] for note in notes}
    while any(process.poll() is None for process in processes):
        for note in notes:
            seen[note].append(noted(note))
    assert [process.returncode for process in processes] == [0, 0]
    for note in notes:
        assert seen[note] == sorted(seen[note])
        assert len(set(seen[note])) > 10, "the processes were not observed"
        assert noted(note) == 1 + 2 * each


def test_the_slower_of_two_writers_does_not_lower_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has committed its entry and is about to note it, when the second does both."""
    slow, fast = opened(tmp_path), opened(tmp_path)
    note_head, pending = Ledger._note_head, [True]

    def overtaken(self: Ledger) -> None:
        head = self.head()
        while pending:
            pending.pop()
            append(fast)
        monkeypatch.setattr(self, "head", lambda: head)  # as it was when it was read
        note_head(self)
        monkeypatch.undo()

    monkeypatch.setattr(slow, "_note_head", lambda: overtaken(slow))
    append(slow)
    assert noted(tmp_path / "ledger.sqlite.head") == 3


def test_an_interrupted_note_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    with closing(opened(tmp_path)) as ledger:
        before = {path.name for path in tmp_path.iterdir()}
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", interrupt)
            with pytest.raises(KeyboardInterrupt):
                append(ledger)
        assert {path.name for path in tmp_path.iterdir()} == before
        append(ledger)
        assert noted(ledger.head_notes[0]) == ledger.head()[0]


def test_threads_share_a_note(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: append(ledger), range(40)))
    assert noted(tmp_path / "ledger.sqlite.head") == 41
    assert ledger.verify() is None


def test_a_damaged_note_is_written_anew(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    for damage in ("", "not a head", "-5:00", "9" * 5000):
        (tmp_path / "ledger.sqlite.head").write_text(damage)
        append(ledger)
        assert (tmp_path / "ledger.sqlite.head").read_text() == f"{format_head(ledger.head())}\n"


def roll_back(machine: Path, backup: Path) -> None:
    """Restore everything on the machine: ledger, key, and the note next to the ledger."""
    shutil.rmtree(machine)
    shutil.copytree(backup, machine)


def test_only_the_witness_detects_that_the_whole_machine_was_rolled_back(tmp_path: Path) -> None:
    machine, witness = tmp_path / "machine", tmp_path / "elsewhere" / "witness"
    machine.mkdir()
    witness.parent.mkdir()
    with closing(opened(machine, witness=witness)) as ledger:
        append(ledger)
    shutil.copytree(machine, tmp_path / "backup")
    with closing(opened(machine, witness=witness)) as ledger:
        append(ledger)
        head = format_head(ledger.head())
    assert witness.read_text() == f"{head}\n"
    roll_back(machine, tmp_path / "backup")
    (machine / "ledger.sqlite.witness").unlink()
    opened(machine).close()  # without a witness, the older copy is consistent in itself
    with pytest.raises(VesperError, match=r"witness lists 3 entries; restore the newest ledger"):
        opened(machine, witness=witness)
    assert witness.read_text() == f"{head}\n", "what was noted stays noted"


def test_a_rolled_back_ledger_that_grew_again_is_detected_too(tmp_path: Path) -> None:
    """As many entries as before, or more, but others."""
    machine, witness = tmp_path / "machine", tmp_path / "witness"
    machine.mkdir()
    opened(machine, witness=witness).close()
    shutil.copytree(machine, tmp_path / "backup")
    with closing(opened(machine, witness=witness)) as ledger:
        append(ledger)
    roll_back(machine, tmp_path / "backup")
    (machine / "ledger.sqlite.witness").unlink()
    with closing(Ledger(machine / "ledger.sqlite", clock=lambda: 9.0)) as ledger:
        append(ledger)
        append(ledger)
    with pytest.raises(VesperError, match="older than what was charged"):
        opened(machine, witness=witness)


def test_a_witness_that_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(VesperError, match=r"missing/witness: cannot be written .*nothing was rel"):
        opened(tmp_path, witness=tmp_path / "missing" / "witness")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder: cannot be read"):
        opened(tmp_path, witness=tmp_path / "folder")


def test_whoever_opens_a_ledger_later_raises_its_witness_too(tmp_path: Path) -> None:
    machine, witness = tmp_path / "machine", tmp_path / "elsewhere" / "witness"
    machine.mkdir()
    witness.parent.mkdir()
    opened(machine, witness=witness).close()
    backup = tmp_path / "backup"
    shutil.copytree(machine, backup)
    with closing(opened(machine)) as ledger:  # as a verb without settings does
        open_account(ledger, "g", num_nodes=3)
        head = format_head(ledger.head())
    assert witness.read_text().strip() == head
    shutil.rmtree(machine)
    shutil.copytree(backup, machine)
    with pytest.raises(VesperError, match="older than what was charged"):
        opened(machine)
    with closing(open_to_read(machine / "ledger.sqlite")) as reader:
        assert reader.behind_head_note() is not None


def test_a_missing_note_of_the_head_is_refused(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        open_account(ledger, "g", num_nodes=3)
        head = format_head(ledger.head())
    note = tmp_path / "ledger.sqlite.head"
    note.unlink()
    with pytest.raises(VesperError, match="expected the note of the head"):
        opened(tmp_path)
    note.write_text(head)
    opened(tmp_path).close()


def test_a_first_note_that_a_killed_process_has_not_written(tmp_path: Path) -> None:
    opened(tmp_path).close()
    note = tmp_path / "ledger.sqlite.head"
    note.unlink()
    opened(tmp_path).close()
    assert note.exists()
