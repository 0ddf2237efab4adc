"""docs/two-parties.md, line by line: two processes, fresh certificates, loopback.

A prompt says in whose folder a command runs. Commands of both parties in one block run at the same
time, the platform's in a process of its own; all others run one after the other.
"""

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vesper.cli.app import main

PAGE = Path(__file__).parents[1] / "docs" / "two-parties.md"
FOLDERS = {"anywhere": ".", "platform": "platform", "bank": "bank"}


def blocks() -> Iterator[list[tuple[str, list[str]]]]:
    """Commands of each block: whose, and what."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        yield [(who, shlex.split(line)) for who, line in re.findall(r"^(\w+)\$ (.*)$", block, re.M)]


class Machines:
    """Runs commands in the folders of their owners; each must end well."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root, self._monkeypatch = root, monkeypatch

    def run(self, who: str, command: list[str]) -> None:
        if command[0] != "vesper":
            assert command[0] in {"cp", "mkdir"}, f"no test runs {command[0]}"
            subprocess.run(command, cwd=self._root / FOLDERS[who], check=True)
            return
        self._monkeypatch.chdir(self._root / FOLDERS[who])
        self._monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code, command

    def run_together(self, commands: dict[str, list[str]]) -> None:
        with subprocess.Popen(
            [sys.executable, "-m", *commands["platform"]],
            cwd=self._root / "platform",
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            self.run("bank", commands["bank"])
            problem = process.communicate(timeout=120)[1]
        assert process.returncode == 0, problem

    def make_small(self) -> None:
        """What a person would edit: the address; and fewer epochs, as this is a test."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            here = f"127.0.0.1:{free.getsockname()[1]}"
        for path in (self._root / "platform" / "data.toml", self._root / "bank" / "label.toml"):
            text = path.read_text()
            for address in ("0.0.0.0:7101", "platform.example:7101"):
                text = text.replace(address, here)
            path.write_text(text.replace("#epochs = 60", "epochs = 2"))


def test_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines, seen = Machines(tmp_path, monkeypatch), set()
    for block in blocks():
        seen |= {" ".join(command[:2]) for _, command in block}
        if {who for who, _ in block} == {"platform", "bank"} and "init" not in block[0][1]:
            machines.run_together(dict(block))
            continue
        for who, command in block:
            machines.run(who, command)
        if block[0][1][1] == "init":
            machines.make_small()
    assert {"vesper cert", "vesper preflight", "vesper align", "vesper party"} <= seen
    assert (tmp_path / "bank" / "state" / "result" / "result.json").is_file()
    assert not list((tmp_path / "platform").rglob("bank.key"))
