"""Shared outputs: written by this process, by another one, and where that is impossible."""

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
    not hasattr(os, "memfd_create"), reason="needs memfd_create, which only Linux has"
)

LOCAL = InProcessEngine(1, local=True)
VALUES = np.ones((4, 2), dtype=np.float32)

WRITE = """
import pickle, sys
import numpy as np
from vesper.engine.shared_output import write_output
values = np.full((int(sys.argv[2]), 3), float(sys.argv[3]), dtype=np.float32)
assert write_output(values, pickle.loads(bytes.fromhex(sys.argv[1])))
"""


def slice_of(output: SharedOutput, start: int) -> OutputSlice:
    place = output.slice_for(LOCAL, 0, start)
    assert place is not None
    return place


def write_from_another_process(place: OutputSlice, rows: int, value: float) -> None:
    sent = [pickle.dumps(place).hex(), str(rows), str(value)]
    subprocess.run([sys.executable, "-c", WRITE, *sent], check=True, timeout=60)


def test_rows_of_another_process_are_readable_and_stay() -> None:
    with SharedOutput((5000, 3), np.float32) as output:
        assert not output.rows.any()
        write_from_another_process(slice_of(output, 7), 4704, 2.5)
        rows = output.rows
    assert rows.shape == (5000, 3)
    assert (rows[7:4711] == 2.5).all()
    assert not rows[:7].any()
    assert not rows[4711:].any()
    rows += 1.0  # the result belongs to this process
    assert rows.max() == 3.5


def test_nobody_can_write_once_it_is_closed() -> None:
    with SharedOutput((4, 2), np.float32) as output:
        place = slice_of(output, 0)
        file = os.open(place.path, os.O_RDWR)
        os.pwrite(file, b"now", 0)
    assert not write_output(VALUES, place)
    assert output.slice_for(LOCAL, 0, 0) is None
    with pytest.raises(PermissionError):  # not even through an open file
        os.pwrite(file, b"later", 0)
    os.close(file)
    output.rows[:] = 1.0
    assert output.rows.sum() == 8.0


def test_another_file_at_the_path_is_not_written_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"precious" * 4)
    with SharedOutput((4, 2), np.float32) as output:
        assert not write_output(VALUES, replace(slice_of(output, 0), path=other))
        assert write_output(VALUES, slice_of(output, 0))
    assert other.read_bytes() == b"precious" * 4


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_an_empty_output_has_no_slices(shape: tuple[int, int]) -> None:
    with SharedOutput(shape, np.float32) as output:
        assert output.slice_for(LOCAL, 0, 0) is None
        assert output.rows.shape == shape


def test_remote_workers_and_systems_without_memfd_send_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SharedOutput((4, 2), np.float32) as output:
        assert output.slice_for(InProcessEngine(1, local=False), 0, 0) is None
    monkeypatch.delattr(os, "memfd_create")
    with SharedOutput((4, 2), np.float32) as output:
        assert output.slice_for(LOCAL, 0, 0) is None
        assert output.rows.shape == (4, 2)


@pytest.mark.parametrize("failing", ["os.memfd_create", "os.ftruncate", "mmap.mmap"])
def test_a_system_that_provides_no_memory_makes_no_difference(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charged release must not be lost because shared memory is unavailable."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not here")

    files = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(f"vesper.engine.shared_output.{failing}", refuse)
    with SharedOutput((4, 2), np.float32) as output:
        assert output.slice_for(LOCAL, 0, 0) is None
        output.rows[:] = VALUES
    monkeypatch.undo()
    assert len(list(Path("/proc/self/fd").iterdir())) == files


def test_no_file_and_no_memory_is_left_open() -> None:
    def maps() -> int:
        gc.collect()
        return Path("/proc/self/maps").read_text().count("vesper-output")

    before, files = maps(), len(list(Path("/proc/self/fd").iterdir()))
    with SharedOutput((1 << 16, 2), np.float32) as output:
        assert write_output(VALUES, slice_of(output, 3))
        assert maps() == before + 1
    del output
    assert (maps(), len(list(Path("/proc/self/fd").iterdir()))) == (before, files)
