"""A terminal for tests of the command line, and folders for it."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from vesper.cli.app import main


class Terminal:
    """Runs `vesper ...` in this process and captures its output."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.out = self.err = ""

    def run(self, *arguments: object) -> int:
        self._monkeypatch.setattr(sys, "argv", ["vesper", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        self.out, self.err = self._capsys.readouterr()
        assert "Traceback" not in self.err
        return int(ended.value.code or 0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


@pytest.fixture
def ring(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """A ring of 400 nodes, and ten isolated nodes; no labels."""
    return write_folders(
        tmp_path,
        nodes={"id": range(410), "f": [0.0] * 410},
        edges={"src": range(400), "dst": [(k + 1) % 400 for k in range(400)]},
    )
