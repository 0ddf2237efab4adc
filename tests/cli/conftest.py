"""A terminal for tests of the command line."""

import sys

import pytest

from vesper.cli.app import main


class Terminal:
    """Runs `vesper ...` in this process; keeps what it printed."""

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
