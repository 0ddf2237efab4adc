"""`vesper demo` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


def test_demo_runs_twice_and_removes_only_its_own_folders(
    terminal: "Terminal", tmp_path: Path
) -> None:
    out = tmp_path / "demo"
    for _ in range(2):
        assert terminal.run("demo", "--nodes", 600, "--out", out) == 0
        assert "certified" in terminal.out
        assert "ROC-AUC" in terminal.out
        assert "4, claimed" in terminal.out
        assert (out / "two-parties" / "platform" / "ledger.sqlite").is_file()
        assert (out / "report.html").is_file()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").write_text("years of work")
    assert terminal.run("demo", "--nodes", 600, "--out", precious) == 2
    assert (precious / "thesis").read_text() == "years of work"
