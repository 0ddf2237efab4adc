"""The scratch database is bounded, and stops on Ctrl-C and on a full disk."""

import os
import signal
import threading
from pathlib import Path

import pytest

from vesper.datasets.prepare.database import number, scratch_database
from vesper.errors import VesperError

ENDLESS = "SELECT count(*) FROM range(1000000000000) t(k) WHERE hash(k) % 3 = 1"


class Stopped(BaseException):
    pass


@pytest.mark.parametrize("_", range(5))  # which of DuckDB's threads does the work varies
def test_ctrl_c_reaches_the_installed_handler(tmp_path: Path, _: int) -> None:
    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGINT, stop)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(Stopped), scratch_database(tmp_path) as connection:
            number(connection, ENDLESS)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_running_out_of_memory_is_a_failed_run(tmp_path: Path) -> None:
    def sort_with_little_memory() -> None:
        with scratch_database(tmp_path) as connection:
            connection.execute("SET memory_limit = '20MB'")
            connection.execute("SET temp_directory = ''")
            connection.execute("SELECT list(r ORDER BY -r) FROM range(9000000) t(r)").fetchall()

    with pytest.raises(VesperError, match="out of memory or disk"):
        sort_with_little_memory()


def test_a_relative_folder_is_never_read_as_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("md:x").mkdir()
    with scratch_database(Path("md:x")) as connection:
        assert number(connection, "SELECT 41 + 1") == 42
    assert Path("md:x", "tables.duckdb").is_file()
