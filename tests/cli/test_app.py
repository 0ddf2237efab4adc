"""The command line as users see it: output, exit codes, one message per error."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.cli import app as app_module
from vesper.deployment.config.template import template_text
from vesper.version import VERSION

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.fixture
def folders(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    ids, splits = [1, 2, 3, 4], ["train", "train", "val", "test"]
    return write_folders(
        tmp_path / "folders",
        nodes={"id": ids, "age": [1.0, 2.0, 3.0, 4.0]},
        edges={"src": [1, 2, 2, 3], "dst": [2, 1, 2, 1]},
        labels={"id": ids, "label": [0, 1, 2, 1], "split": splits},
    )


def test_version_help_and_module(terminal: "Terminal") -> None:
    assert terminal.run("--version") == 0
    assert terminal.out == f"vesper {VERSION}\n"
    assert terminal.run("--help") == 0
    for verb in ("data", "prepare", "simulate", "demo"):
        assert verb in terminal.out
    assert "3 refused by the" in terminal.out
    done = subprocess.run(
        [sys.executable, "-m", "vesper", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"vesper {VERSION}\n"


def test_check_counts(terminal: "Terminal", folders: Path) -> None:
    assert terminal.run("data", "check", folders, "--json") == 0
    facts = json.loads(terminal.out)
    assert facts["nodes"] == 4
    assert facts["edges"] == 2
    assert facts["features"] == 1
    assert facts["classes"] == 3
    assert facts["isolated"] == 1
    assert facts["mean_degree"] == 1.0
    assert facts["bytes_per_directed_edge"] == 4.0
    assert (facts["self_loops_dropped"], facts["duplicates_merged"]) == (1, 1)
    assert terminal.run("data", "check", folders) == 0
    assert "mean degree" in terminal.out
    assert terminal.run("data", "check", folders / "data", "--json") == 0
    assert json.loads(terminal.out)["classes"] is None


def test_wrong_input_is_one_message_and_exit_code_2(
    terminal: "Terminal", folders: Path, write_folders: Callable[..., Path]
) -> None:
    write_folders(folders, edges={"src": [1, 77], "dst": [2, 2]})
    assert terminal.run("data", "check", folders) == 2
    message = [line for line in terminal.err.splitlines() if line.startswith("vesper: ")]
    assert len(message) == 1
    assert "column src: 1 rows name an id that is not a node (first 1: 77)" in message[0]
    assert terminal.out == ""
    assert terminal.run("data", "check", folders / "nowhere") == 2
    assert terminal.run("data", "chekc") == 2
    assert terminal.run("simulate", "--data", folders) == 2


def test_simulate_writes_a_run_and_prints_json(terminal: "Terminal", folders: Path) -> None:
    out = folders.parent / "run"
    common = ("simulate", "--data", folders, "--set", "epochs=1")
    assert terminal.run(*common, "--out", out, "--epsilon", 2, "--seed", 1, "--json") == 0
    facts = json.loads(terminal.out)
    assert facts["metric"] == "accuracy"
    assert facts["privacy"]["plan"] == "certified"
    assert facts["privacy"]["simulated"] is True
    assert facts["privacy"]["certified_epsilon"] == 2.0
    assert facts["privacy"]["noise_std"] > 0
    assert facts["seconds"] > 0
    assert facts["peak_memory_bytes"] > 0
    assert json.loads((out / "config.json").read_text())["run"]["seed"] == 1
    assert terminal.run(*common, "--out", out) == 2
    assert "new or empty folder" in terminal.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "epohcs=1"), "unknown setting 'epohcs'; did you mean 'run.epochs'?"),
        (("--set", "epochs"), "--set: expected key=value, got 'epochs'"),
        (("--set", "epochs=many"), "setting 'run.epochs'"),
        (("--set", "epochs=" + "9" * 5_000), "setting 'run.epochs'"),
        (("--set", "epochs=" + "[" * 9_000), "setting 'run.epochs'"),
        (("--epsilon", "0"), "setting 'privacy.epsilon'"),
        (("--epsilon", "4", "--set", "privacy.epsilon=1"), "got it twice: --epsilon 4.0 and --set"),
        (("--set", "epochs=1", "--set", "run.epochs=2"), "epochs=1 and --set run.epochs=2; remove"),
        (("--set", "weight_decay=Infinity"), "setting 'run.weight_decay'"),
        (("--set", "accounting=theorem-1"), "accounting: expected 'exact', got 'theorem-1', which"),
        (
            ("--method", "gcn", "--set", "aggregator=gcn"),
            "expected only the built-in one for method 'gcn', got 'gcn'",
        ),
        (("--method", "magic"), "method: expected one of"),
    ],
)
def test_wrong_settings(
    terminal: "Terminal", folders: Path, arguments: tuple[str, ...], message: str
) -> None:
    out = folders.parent / "run"
    assert terminal.run("simulate", "--data", folders, "--out", out, *arguments) == 2
    assert message in terminal.err
    assert not out.exists()


def test_ignored_settings_are_reported(terminal: "Terminal", folders: Path) -> None:
    common = ("simulate", "--data", folders, "--set", "epochs=1", "--method", "gcn")
    given = ("--set", "steps=3", "--set", "degree_share=0.4")
    assert terminal.run(*common, "--out", folders.parent / "one", *given) == 0
    assert "note: method gcn ignores steps, degree_share" in terminal.err
    assert terminal.run(*common, "--out", folders.parent / "two") == 0
    assert "note:" not in terminal.err


def test_ctrl_c_ends_without_a_traceback_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    out = tmp_path / "finance"
    command = [sys.executable, "-m", "vesper", "data", "finance", "--nodes", "400000", "--out"]
    with subprocess.Popen([*command, str(out)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline()  # it is running
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted; incomplete output was removed" in rest
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []


CTRL_C_DURING_IMPORT = """
import os, signal, sys
from vesper.__main__ import main

module = sys.argv.pop(1)

class Finder:
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
main()
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("vesper.cli.app", ("--help",)),
        ("typer", ("--help",)),
        ("numpy", ("simulate",)),
        ("pyarrow.lib", ("simulate",)),
        ("torch._C", ("simulate",)),
        ("torch.nn", ("simulate",)),
        ("numba.core.config", ("simulate",)),
        ("duckdb", ("prepare",)),
        ("_duckdb", ("prepare",)),
    ],
)
def test_ctrl_c_during_an_import_ends_with_one_line(
    folders: Path, module: str, arguments: tuple[str, ...]
) -> None:
    out = folders.parent / "out"
    table = folders / "label" / "labels.parquet"
    options = {
        "simulate": ("--data", folders, "--out", out),
        "prepare": (
            *("--transfers", table, "--activity", table, "--labels", table, "--out", out),
            *("--train-window", "0..1", "--test-window", "1..2"),
        ),
    }
    rest = map(str, options.get(arguments[0], ()))
    command = [sys.executable, "-c", CTRL_C_DURING_IMPORT, module, *arguments, *rest]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 130
    lines = ended.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("vesper: interrupted")
    assert not out.exists()


def test_ctrl_c_after_the_end_of_a_verb_ends_with_one_line() -> None:
    script = (
        "import atexit, os, signal\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "from vesper.__main__ import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "--version"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (130, f"vesper {VERSION}\n")
    assert ended.stderr == "vesper: interrupted\n"


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
)
def test_running_out_of_memory_ends_with_a_message(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_out() -> None:
        raise error

    monkeypatch.setattr(app_module, "app", run_out)
    with pytest.raises(SystemExit) as ended:
        app_module.main()
    assert ended.value.code == 1
    assert "ran out of it; lower width" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_ends_with_a_message(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill() -> None:
        raise OSError(number, os.strerror(number), "out/file")

    monkeypatch.setattr(app_module, "app", fill)
    with pytest.raises(SystemExit) as ended:
        app_module.main()
    assert ended.value.code == 1
    message = capsys.readouterr().err
    assert message.startswith(f"vesper: out/file: cannot be written ({os.strerror(number)}); free")


def test_other_failures_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(app_module, "app", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        app_module.main()


WITHOUT_TORCH = """
import sys

from vesper.cli.app import main

sys.modules["torch"] = None  # importing it fails
sys.argv = ["vesper", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("setting", "line", "message"),
    [
        ("epochs=many", ("#epochs = 60", 'epochs = "many"'), "setting 'run.epochs'"),
        ("epohcs=1", ("#epochs = 60", "epohcs = 1"), "epohcs'"),
        ("method=magic", ('method = "certified"', 'method = "magic"'), "method: expected one of"),
        ("epsilon=-1", ("epsilon = 4.0", "epsilon = -1"), "setting 'privacy.epsilon'"),
    ],
)
def test_invalid_settings_are_refused_before_torch_is_loaded(
    tmp_path: Path, setting: str, line: tuple[str, str], message: str
) -> None:
    path = tmp_path / "party.toml"
    path.write_text(template_text("data", path.name).replace(*line))
    simulate = ("simulate", "--data", "none", "--out", "none", "--set", setting)
    for arguments in (simulate, ("party", "data", "--config", str(path))):
        command = [sys.executable, "-c", WITHOUT_TORCH, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert ended.returncode == 2, ended.stderr
        assert message in ended.stderr
