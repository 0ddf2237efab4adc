"""`vesper demo` on the command line."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.cli import demo_command
from vesper.errors import VesperError

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


def fail(*_: object) -> None:
    raise VesperError("it failed")


@pytest.mark.parametrize("keep", [False, True])
def test_a_failed_demo_leaves_nothing(
    terminal: "Terminal", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(demo_command, "_train", fail)
    monkeypatch.chdir(tmp_path)
    options = ("--out", "demo") if keep else ()
    assert terminal.run("demo", "--nodes", 600, *options) == 1
    assert list(tmp_path.iterdir()) == []
    if keep:
        (tmp_path / "demo").mkdir()
        assert terminal.run("demo", "--nodes", 600, *options) == 1
        assert list((tmp_path / "demo").iterdir()) == []


def test_without_a_folder_to_keep_nothing_is_left(
    terminal: "Terminal", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epsilons = {"certified_epsilon": None, "claimed_epsilon": None}
    result = {"privacy": {"plan": "none", "noise_std": 0.0, **epsilons}, "test": 50.0}
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(demo_command, "_train", lambda *_: result)
    monkeypatch.chdir(tmp_path)
    assert terminal.run("demo", "--nodes", 600) == 0
    assert "--out" in terminal.out
    assert str(tmp_path) not in terminal.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["1/5", "3/5"])
def test_ctrl_c_leaves_nothing(tmp_path: Path, step: str) -> None:
    command = [sys.executable, "-m", "vesper", "demo", "--nodes", "600"]
    here, temporary = tmp_path / "here", tmp_path / "temporary"  # where torch makes a cache
    here.mkdir()
    temporary.mkdir()
    with subprocess.Popen(
        [*command, "--out", "demo"] if step == "3/5" else command,
        cwd=here,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith(step):
            assert process.poll() is None
        if step == "3/5":
            process.stderr.readline()  # one of the two processes has said something
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    lines = [line for line in rest.splitlines() if line.startswith("vesper: ")]
    assert lines == ["vesper: interrupted; incomplete output was removed"]
    assert "Traceback" not in rest
    assert [*here.iterdir(), *temporary.glob("vesper-*")] == []


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
        methods = (out / "methods.html").read_text()
        assert "gaussian release" in methods, "charges, as on the report"
        assert all(name in methods for name in ("bank", "run-mlp", "run-paper-gin", "run-gin"))
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis").write_text("years of work")
    assert terminal.run("demo", "--nodes", 600, "--out", precious) == 2
    assert (precious / "thesis").read_text() == "years of work"
