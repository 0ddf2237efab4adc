"""`vesper board` as a process: it shows a run until stopped; wrong input ends with one message."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.session.config import load_config
from vesper.session.journal import open_journal

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

LIMIT = 120.0


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """The state folder of a label party that is training."""
    with open_journal(tmp_path, side="label", config=load_config(None, {})) as journal:
        journal.progress("training", 3, 9)
        yield tmp_path


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_shown_until_stopped(run: Path, signum: signal.Signals) -> None:
    before = {path: path.read_bytes() for path in run.iterdir()}
    command = [sys.executable, "-m", "vesper", "board", str(run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        port = int(it.stdout.readline().partition("127.0.0.1:")[2].partition("/")[0])
        with closing(HTTPConnection("127.0.0.1", port, timeout=LIMIT)) as client:
            client.request("GET", "/")
            assert b"3 of 9" in client.getresponse().read()
            client.request("GET", "/", headers={"Host": "elsewhere.example"})
            assert client.getresponse().status == 403
        it.send_signal(signum)
        output, problems = it.communicate(timeout=LIMIT)
    assert it.returncode == 0
    assert output == "stopped\n"
    assert problems == ""
    assert {path: path.read_bytes() for path in run.iterdir()} == before, "the run is only read"


def test_wrong_input(terminal: "Terminal", run: Path) -> None:
    assert terminal.run("board", run / "missing") == 2
    assert "expected the --out of a 'vesper simulate'" in terminal.err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert terminal.run("board", run, "--port", port) == 2
    assert "is the port taken?" in terminal.err
