"""A party whose terminal is gone runs on; its exit does not depend on how much it has printed."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from vesper.cli.console import keep_running_without_output, print_line, print_warning
with keep_running_without_output():
    for k in range(int(sys.argv[1])):
        print_warning("for the owner alone")
        print_line("a line " + "x" * 10_000)
raise SystemExit(7)
"""


def run_without_readers(lines: int) -> int:
    """Run a program whose output nobody reads; return its exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(lines)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        return process.wait()


def test_output_that_nobody_reads_does_not_end_a_party() -> None:
    assert [run_without_readers(lines) for lines in (0, 1, 50)] == [7, 7, 7]


def test_a_full_disk_behind_the_output_does_not_end_a_party() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "3"], stdout=full, stderr=full, check=False
        )
    assert done.returncode == 7
