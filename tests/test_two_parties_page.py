"""docs/two-parties.md, line by line: two processes, fresh certificates, loopback.

A prompt says in whose folder a command runs. Commands of both parties in one block run at the same
time, all others one after the other.
"""

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "two-parties.md"
FOLDERS = {"anywhere": ".", "platform": "platform", "bank": "bank"}


def blocks() -> Iterator[list[tuple[str, list[str]]]]:
    """Commands of each block: whose, and what."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        yield [(who, shlex.split(line)) for who, line in re.findall(r"^(\w+)\$ (.*)$", block, re.M)]


def start(root: Path, who: str, command: list[str]) -> "subprocess.Popen[str]":
    if command[0] == "vesper":
        command = [sys.executable, "-m", *command]
    assert command[0] in {sys.executable, "cp", "mkdir"}, f"no test runs {command[0]}"
    return subprocess.Popen(
        command,
        cwd=root / FOLDERS[who],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*processes: "subprocess.Popen[str]") -> None:
    ended = [(process, *process.communicate(timeout=240)) for process in processes]
    for process, out, err in ended:
        assert process.returncode == 0, f"{process.args}\n{out}\n{err}"


def make_small(root: Path) -> None:
    """What a person would edit: the address; and fewer epochs, as this is a test."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        here = f"127.0.0.1:{free.getsockname()[1]}"
    for path in (root / "platform" / "data.toml", root / "bank" / "label.toml"):
        text = path.read_text()
        for address in ("0.0.0.0:7101", "platform.example:7101"):
            text = text.replace(address, here)
        path.write_text(text.replace("#epochs = 60", "epochs = 2"))


def test_the_page_works(tmp_path: Path) -> None:
    seen = set()
    for block in blocks():
        together = {who for who, _ in block} == {"platform", "bank"}
        running = []
        for who, command in block:
            seen.add(" ".join(command[:2]))
            running.append(start(tmp_path, who, command))
            if not together:
                finish(running.pop())
        finish(*running)
        if ["vesper", "init"] in [command[:2] for _, command in block]:
            make_small(tmp_path)
    assert {"vesper init", "vesper cert", "vesper align", "vesper party"} <= seen
    assert (tmp_path / "bank" / "state" / "result" / "result.json").is_file()
    assert not list((tmp_path / "platform").rglob("bank.key"))
