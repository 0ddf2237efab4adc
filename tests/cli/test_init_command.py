"""`vesper init` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.mark.parametrize("role", ["data", "label"])
def test_a_file_for_each_party(terminal: "Terminal", tmp_path: Path, role: str) -> None:
    out = tmp_path / "party.toml"
    assert terminal.run("init", role, "--out", out) == 0
    assert f'role = "{role}"' in out.read_text()
    assert f"vesper party {role} --config party.toml" in out.read_text()
    assert terminal.run("init", role, "--out", out) == 2
    assert "already exists and will not be overwritten" in terminal.err


def test_another_role(terminal: "Terminal", tmp_path: Path) -> None:
    assert terminal.run("init", "both", "--out", tmp_path / "party.toml") == 2
    assert "'data'" in terminal.err
    assert list(tmp_path.iterdir()) == []
