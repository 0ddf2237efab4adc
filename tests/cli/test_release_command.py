"""`vesper release` and `vesper verify` on the command line."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.privacy.ledger.ledger_file import default_ledger

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.fixture
def folders(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """A ring of 60 nodes with labels."""
    ids, splits = range(60), ["train", "val", "test"] * 20
    return write_folders(
        tmp_path / "folders",
        nodes={"id": ids, "age": [float(k % 7) for k in ids]},
        edges={"src": ids, "dst": [(k + 1) % 60 for k in ids]},
        labels={"id": ids, "label": [k // 3 % 2 for k in ids], "split": splits},
    )


def test_release_then_verify(terminal: "Terminal", folders: Path) -> None:
    out = folders.parent / "r.parquet"
    named = ("--data", folders, "--graph", "payments")
    common = ("release", *named, "--epsilon", 4, "--set", "epochs=1")
    assert terminal.run(*common, "--out", out, "--json") == 0
    facts = json.loads(terminal.out)
    assert facts["simulated"] is False
    assert facts["names"][:2] == ["id", "stage0_0"]
    assert default_ledger().exists()
    assert not list(folders.rglob("*.sqlite"))
    text = out.with_suffix(".statement.json").read_text()
    assert "payments" not in text, "the name of the graph is its owner's"
    assert terminal.run("verify", out, "--public-key", facts["public_key"]) == 0
    assert "epsilon 4, delta 0.001 for one edge" in terminal.out
    assert terminal.run("verify", out, "--json") == 0
    shown = json.loads(terminal.out)
    assert (shown["valid"], shown["key_was_given"]) == (True, False)
    assert terminal.run("verify", out, "--public-key", "ab" * 32) == 1
    assert "another key" in terminal.err
    assert terminal.run("verify", out, "--public-key", "key") == 2
    second = folders.parent / "second.parquet"
    assert terminal.run(*common, "--out", second) == 3
    assert "Remaining" in terminal.err
    assert not second.exists()
    assert terminal.run(*common, "--out", out) == 2
    out.write_bytes(out.read_bytes() + b"x")
    assert terminal.run("verify", out) == 1
    assert terminal.run("verify", second) == 2


def test_a_seed_leaves_the_noise_secret(terminal: "Terminal", folders: Path) -> None:
    out, ledger = folders.parent / "r.parquet", folders.parent / "one.sqlite"
    common = ("--data", folders, "--epsilon", 4, "--seed", 1, "--set", "epochs=1", "--out", out)
    assert terminal.run("release", *common) == 2
    assert "expected a name for the graph" in terminal.err
    charged = ("--graph", "payments", "--ledger", ledger)
    assert terminal.run("release", *common, "--simulate-noise", *charged) == 2
    assert "--ledger: expected none with simulated noise" in terminal.err
    assert not ledger.exists()
    assert terminal.run("release", *common, *charged) == 0
    assert "epsilon 4, delta 0.001 for one edge" in terminal.out
    assert "SIMULATED" not in terminal.out


def test_simulated_noise_is_reported(terminal: "Terminal", folders: Path) -> None:
    out = folders.parent / "r.parquet"
    arguments = ("--data", folders / "data", "--epsilon", 4, "--simulate-noise", "--out", out)
    assert terminal.run("release", *arguments) == 0
    assert "SIMULATED noise, not private" in terminal.out
    assert terminal.run("verify", out) == 0
    assert "SIMULATED noise, not private" in terminal.out


def test_learning_from_simulated_features_is_reported(terminal: "Terminal", folders: Path) -> None:
    for number, simulate in enumerate((("--simulate-noise",), ())):
        out = folders.parent / f"{number}.parquet"
        named = ("--data", folders, "--graph", f"graph-{number}")
        common = (*named, "--epsilon", 4, "--set", "epochs=1", "--out", out)
        assert terminal.run("release", *common, *simulate) == 0
        given = ("--released", out, "--labels", folders / "label", "--set", "epochs=1")
        assert terminal.run("learn", *given, "--out", folders.parent / f"model{number}") == 0
        assert "epsilon 4, delta 0.001, by their statement" in terminal.out
        assert ("SIMULATED noise, not private" in terminal.out) is bool(simulate)


def test_another_budget_than_that_of_the_graph_is_refused(
    terminal: "Terminal", folders: Path
) -> None:
    data = folders / "data"
    first, second = (folders.parent / f"{name}.parquet" for name in ("first", "second"))
    common = ("release", "--data", data, "--graph", "payments")
    assert terminal.run(*common, "--epsilon", 1, "--out", first) == 0
    assert terminal.run(*common, "--epsilon", 2, "--out", second) == 2
    assert "is not set twice" in terminal.err
    assert not second.exists()


def test_a_second_name_for_the_same_edges_leads_to_a_warning(
    terminal: "Terminal", folders: Path
) -> None:
    common = ("release", "--data", folders / "data", "--epsilon", 1)
    for number, name in enumerate(("october", "november")):
        out = folders.parent / f"{number}.parquet"
        assert terminal.run(*common, "--graph", name, "--out", out) == 0
        assert ("shares all of its edges" in terminal.err) is bool(number)
        assert "shares" not in terminal.out + out.with_suffix(".statement.json").read_text()


def test_a_killed_release_leaves_no_partial_file(terminal: "Terminal", folders: Path) -> None:
    out = folders.parent / "killed" / "r.parquet"
    common = ["release", "--data", str(folders), "--epsilon", "4", "--out", str(out)]
    arguments = [*common, "--graph", "payments"]
    endless = ["--set", "epochs=1000000", "--set", "patience=1000000"]
    command = [sys.executable, "-m", "vesper", *arguments, *endless]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any(line.startswith("training") for line in process.stderr)
        process.kill()
    left = list(out.parent.iterdir())
    assert [path for path in left if not path.name.startswith(".")] == []
    assert left  # its hidden folder, which the next release removes
    assert terminal.run(*common, "--simulate-noise", "--set", "epochs=1") == 0
    assert {path.name for path in out.parent.iterdir()} == {"r.parquet", "r.statement.json"}
