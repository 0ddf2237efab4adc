"""A full disk or Ctrl-C ends verbs that write with one line; nothing is half-written.

The limit on the size of a file stands for the size of the disk: a write beyond it fails in the same
way, with another error number.
"""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = [
    "data finance --nodes 600 --out fin",
    "release --data fin --epsilon 2 --simulate-noise --set epochs=1 --out released.parquet",
]
COMMANDS = {
    "learn": (
        "learn --released released.parquet --labels fin/label --out out --set epochs=1 "
        "--set width=4000"
    ),
    "prepare": (
        "prepare --transfers fin/transfers.parquet --activity fin/activity.parquet "
        "--labels fin/known_labels.parquet --train-window 2023-01-01..2023-02-06 "
        "--test-window 2023-02-06..2023-04-01 --out out"
    ),
    "study": "study run max-degree --small --seeds 1 --workers 1 --out out",
    "data": "data finance --nodes 600 --out out",
}


def vesper(
    folder: Path, command: str, *, limit: int | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder; no file can become larger than the limit."""

    def set_limit() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "vesper", *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=set_limit,
    )


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `fin`, whose cache is written, and `released.parquet`."""
    folder = tmp_path_factory.mktemp("inputs")
    for command in INPUTS:
        made = vesper(folder, command)
        assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def folder(inputs: Path, tmp_path: Path) -> Path:
    """A folder that refers to the inputs and has nothing else."""
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def outputs(folder: Path, inputs: Path) -> set[str]:
    names = {path.name for path in inputs.iterdir()}
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} - names


@pytest.mark.parametrize(
    ("verb", "limit", "message"),
    [
        ("learn", 100, "the rows of labelled nodes cannot be written next to it (File too large)"),
        ("learn", 40_000, "cannot be written (File too large)"),
        ("prepare", 0, "prepare: out of memory or disk space: "),
        ("prepare", 20_000, "prepare: out of memory or disk space: "),
        ("study", 20_000, "cannot be written"),
        ("data", 20_000, "cannot be written"),
    ],
)
def test_one_line_and_nothing_half_written(
    verb: str, limit: int, message: str, inputs: Path, folder: Path
) -> None:
    ended = vesper(folder, COMMANDS[verb], limit=limit)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("vesper: ")]
    assert message in line
    resumable = {"out", "out/study.json", "out/data"} if verb == "study" else set()
    assert outputs(folder, inputs) == resumable


ENDLESS = "--set epochs=1000000 --set patience=1000000"


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        (
            f"release --data fin --epsilon 2 --simulate-noise --out out.parquet {ENDLESS}",
            "training:",
        ),
        (f"{COMMANDS['learn'].partition(' --set')[0]} {ENDLESS}", "learning:"),
        (COMMANDS["prepare"], "reading activity"),
        (COMMANDS["study"], ""),
        (f"simulate --data fin --out out {ENDLESS}", "training:"),
    ],
    ids=["release", "learn", "prepare", "study", "simulate"],
)
def test_ctrl_c_ends_with_one_line_and_nothing_half_written(
    command: str, sign: str, inputs: Path, folder: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "vesper", *command.split()],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith(sign):
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of its processes
        rest = process.stderr.read()
    assert process.returncode == 130
    lines = [line for line in rest.splitlines() if line.startswith("vesper: ")]
    assert lines == ["vesper: interrupted; incomplete output was removed"]
    assert "Traceback" not in rest
    left = outputs(folder, inputs)
    assert all(path.startswith(("out/data", "out/study.json")) or path == "out" for path in left)
    assert not left or "study" in command
    assert not any(".partial" in path for path in left)
