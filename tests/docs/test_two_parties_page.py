"""The pages for two institutions work line by line, as they are printed, with fresh certificates.

Only the sizes differ (users, epochs), and the ports of pages for the browser. The parties use the
printed address, so the tests wait for each other.

The prompt of a command names the folder in which it runs. Commands that run until Ctrl-C
(`--answer`, `serve`, `board`) run until the commands after them in their block have finished. If a
block has other commands of both parties, they run at the same time, the platform's in a separate
process; all other commands run one after another.
"""

import fcntl
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

import pytest

from vesper.cli.app import main

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = {"anywhere": ".", "platform": "platform", "bank": "bank"}
LIMIT = 120.0

Command = tuple[str, list[str]]
"""Owner of the folder, and words of the command."""


def blocks(page: Path) -> Iterator[list[Command]]:
    """Yield the commands of each block."""
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL):
        yield [(who, shlex.split(line)) for who, line in re.findall(r"^(\w+)\$ (.*)$", block, re.M)]


def runs_until_stopped(command: list[str]) -> bool:
    return "--answer" in command or command[1] in ("serve", "board")


class Machines:
    """Runs commands in the folders of their owners; each must succeed."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root, self._monkeypatch = root, monkeypatch
        self.seen: set[str] = set()

    def follow(self, page: Path) -> None:
        """Run all commands of a page."""
        for block in blocks(page):
            self.seen |= {" ".join(command[:2]) for _, command in block}
            if any(runs_until_stopped(command) for _, command in block):
                self._run_nested(block)
            elif {who for who, _ in block} == {"platform", "bank"} and "init" not in block[0][1]:
                self._run_together(dict(block))
            else:
                for who, command in block:
                    self._run(who, command)
            if block[0][1][1] == "init":
                self._lower_epochs()

    def _run(self, who: str, command: list[str]) -> None:
        if command[0] != "vesper":
            assert command[0] in {"cp", "mkdir"}, f"no test runs {command[0]}"
            subprocess.run(command, cwd=self._root / FOLDERS[who], check=True)
            return
        self._monkeypatch.chdir(self._root / FOLDERS[who])
        if command[1] == "data":  # fewer users, to save time
            command = ["1000" if word == "20000" else word for word in command]
        self._monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, command

    def _run_nested(self, block: list[Command]) -> None:
        """Run commands in order, with those that run until stopped around all that follow them."""
        if not block:
            return
        (who, command), rest = block[0], block[1:]
        if runs_until_stopped(command):
            with self._running(who, command):
                self._run_nested(rest)
        else:
            self._run(who, command)
            self._run_nested(rest)

    @contextmanager
    def _running(self, who: str, command: list[str]) -> Iterator[None]:
        words = [command[0], *("0" if a == "--port" else b for a, b in pairwise(command))]
        folder = self._root / FOLDERS[who]
        process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if "stop with Ctrl-C" in line)
            if "--port" in command:
                address = re.search(r"http://[^ ]*", line)
                assert address is not None
                with urlopen(address[0], timeout=LIMIT) as page:
                    assert page.status == 200
            yield
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=LIMIT) == 0, command
        finally:
            process.kill()
            process.communicate()

    def _run_together(self, commands: dict[str, list[str]]) -> None:
        with subprocess.Popen(
            [sys.executable, "-m", *commands["platform"]],
            cwd=self._root / "platform",
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            self._run("bank", commands["bank"])
            problem = process.communicate(timeout=LIMIT)[1]
        assert process.returncode == 0, problem

    def _lower_epochs(self) -> None:
        """Save time; nothing else of the files is changed."""
        for path in (self._root / "platform" / "data.toml", self._root / "bank" / "label.toml"):
            path.write_text(path.read_text().replace("#epochs = 60", "epochs = 2"))


@pytest.fixture(autouse=True)
def _alone_at_the_printed_port() -> Iterator[None]:
    """Wait until no other test of this machine uses the port on the pages."""
    with (Path(tempfile.gettempdir()) / "vesper-test-port-7101").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_the_pages_about_two_parties_and_serving_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = Machines(tmp_path, monkeypatch)
    machines.follow(DOCS / "two-parties.md")
    assert {"vesper cert", "vesper preflight", "vesper align", "vesper party"} <= machines.seen
    assert (tmp_path / "bank" / "state" / "result" / "result.json").is_file()
    assert not list((tmp_path / "platform").rglob("bank.key"))
    machines.follow(DOCS / "serving.md")
    assert {"vesper predict", "vesper serve"} <= machines.seen
    for predictions in ("predictions.parquet", "new-predictions.parquet"):
        assert (tmp_path / "bank" / predictions).is_file()


def test_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = Machines(tmp_path, monkeypatch)
    machines.follow(DOCS / "tutorial.md")
    steps = (
        "data prepare plan degrees simulate contract preflight party report board budget predict "
        "serve"
    )
    assert {f"vesper {step}" for step in steps.split()} <= machines.seen
    assert (tmp_path / "bank" / "predictions.parquet").is_file()
    assert (tmp_path / "bank" / "report.html").is_file()
