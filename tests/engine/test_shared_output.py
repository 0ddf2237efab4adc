"""Results that land: by this process, by another, and what happens where they cannot."""

import errno
import gc
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vesper.engine.engine import InProcessEngine
from vesper.engine.shared_output import OutputSlice, SharedOutput, write_output

pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="needs memory without a name, which only Linux has"
)

NEAR = InProcessEngine(1, local=True)
VALUES = np.ones((4, 2), dtype=np.float32)

WRITE = """
import pickle, sys
import numpy as np
from vesper.engine.shared_output import write_output
values = np.full((int(sys.argv[2]), 3), float(sys.argv[3]), dtype=np.float32)
assert write_output(values, pickle.loads(bytes.fromhex(sys.argv[1])))
"""


def place_of(landing: SharedOutput, start: int) -> OutputSlice:
    slice_for = landing.slice_for(NEAR, 0, start)
    assert slice_for is not None
    return slice_for


def write_from_another_process(place: OutputSlice, rows: int, value: float) -> None:
    sent = [pickle.dumps(place).hex(), str(rows), str(value)]
    subprocess.run([sys.executable, "-c", WRITE, *sent], check=True, timeout=60)


def test_rows_of_another_process_are_here_and_stay() -> None:
    with SharedOutput((5000, 3), np.float32) as landing:
        assert not landing.rows.any()
        write_from_another_process(place_of(landing, 7), 4704, 2.5)
        rows = landing.rows
    assert rows.shape == (5000, 3)
    assert (rows[7:4711] == 2.5).all()
    assert not rows[:7].any()
    assert not rows[4711:].any()
    rows += 1.0  # the result is this process's own
    assert rows.max() == 3.5


def test_nobody_gets_in_once_it_is_closed() -> None:
    with SharedOutput((4, 2), np.float32) as landing:
        place = place_of(landing, 0)
        file = os.open(place.path, os.O_RDWR)
        os.pwrite(file, b"now", 0)
    assert not write_output(VALUES, place)
    assert landing.slice_for(NEAR, 0, 0) is None
    with pytest.raises(PermissionError):  # nor does who has it open
        os.pwrite(file, b"later", 0)
    os.close(file)
    landing.rows[:] = 1.0
    assert landing.rows.sum() == 8.0


def test_the_file_of_a_stranger_is_not_written_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"precious" * 4)
    with SharedOutput((4, 2), np.float32) as landing:
        assert not write_output(VALUES, replace(place_of(landing, 0), path=other))
        assert write_output(VALUES, place_of(landing, 0))
    assert other.read_bytes() == b"precious" * 4


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_lands_where_there_is_nothing(shape: tuple[int, int]) -> None:
    with SharedOutput(shape, np.float32) as landing:
        assert landing.slice_for(NEAR, 0, 0) is None
        assert landing.rows.shape == shape


def test_a_worker_elsewhere_and_a_system_without_such_files_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SharedOutput((4, 2), np.float32) as landing:
        assert landing.slice_for(InProcessEngine(1, local=False), 0, 0) is None
    monkeypatch.delattr(os, "memfd_create")
    with SharedOutput((4, 2), np.float32) as landing:
        assert landing.slice_for(NEAR, 0, 0) is None
        assert landing.rows.shape == (4, 2)


@pytest.mark.parametrize("failing", ["os.memfd_create", "os.ftruncate", "mmap.mmap"])
def test_a_system_that_gives_no_memory_makes_no_difference(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What must hold: a release that is paid for is not lost for want of a way to bring it."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not here")

    files = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(f"vesper.engine.shared_output.{failing}", refuse)
    with SharedOutput((4, 2), np.float32) as landing:
        assert landing.slice_for(NEAR, 0, 0) is None
        landing.rows[:] = VALUES
    monkeypatch.undo()
    assert len(os.listdir("/proc/self/fd")) == files


def test_no_file_and_no_memory_is_left_open() -> None:
    def maps() -> int:
        gc.collect()
        return Path("/proc/self/maps").read_text().count("vesper-landing")

    before, files = maps(), len(os.listdir("/proc/self/fd"))
    with SharedOutput((1 << 16, 2), np.float32) as landing:
        assert write_output(VALUES, place_of(landing, 3))
        assert maps() == before + 1
    del landing
    assert (maps(), len(os.listdir("/proc/self/fd"))) == (before, files)
