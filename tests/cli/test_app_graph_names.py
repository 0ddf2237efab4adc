"""Verbs that charge a ledger need the name of the graph: one message, and nothing was created."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment import data_process
from vesper.deployment.config.party_config import load_party_config
from vesper.errors import PeerLostError
from vesper.privacy.ledger.ledger_file import default_ledger
from vesper.session.contract import approve

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal
    from tests.conftest import Institutions

EXPECTED = "expected a name for the graph whose budget is charged, got none; give one with "


@pytest.fixture
def folders(ring: Path, write_folders: Callable[..., Path]) -> Path:
    """The ring with labels."""
    splits = ["train", "train", "val", "test"] * 100
    labels = {"id": range(400), "label": [0, 0, 0, 0, 1, 1, 1, 1] * 50, "split": splits}
    return write_folders(ring, labels=labels)


def problem(terminal: "Terminal") -> str:
    """The only message, without progress bars."""
    (line,) = (line for line in terminal.err.splitlines() if line.startswith("vesper"))
    return line


def ledgers_in(*folders: Path) -> Iterator[Path]:
    for folder in (*folders, default_ledger().parent):
        yield from folder.rglob("*.sqlite*")


@pytest.mark.parametrize("more", [(), ("--ledger", "own.sqlite")])
@pytest.mark.parametrize("given", [(), ("--graph", "two words"), ("--graph", "-" * 65)])
def test_counts_and_exports(
    terminal: "Terminal",
    folders: Path,
    more: tuple[str, ...],
    given: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folders)
    out = folders / "released.parquet"
    before = {path: path.stat().st_mtime_ns for path in folders.rglob("*")}
    for arguments in (
        ("degrees", folders),
        ("release", "--data", folders, "--epsilon", 4, "--out", out),
    ):
        assert terminal.run(*arguments, *given, *more) == 2
        text = f"{EXPECTED}--graph NAME." if not given else "letters, digits, dots, hyphens"
        assert text in problem(terminal)
    assert {path: path.stat().st_mtime_ns for path in folders.rglob("*")} == before
    assert not list(ledgers_in(folders))


def test_a_data_party(terminal: "Terminal", institutions: "Institutions") -> None:
    settings, _ = institutions.settings
    institutions.change('graph = "payments"\n', "")
    config = load_party_config(settings)
    assert config.party.graph is None
    approve(config.party.state, config.shared)
    for verb in (("preflight",), ("party", "data")):
        assert terminal.run(*verb, "--config", settings) in (1, 2)
        message = terminal.out + terminal.err if verb == ("preflight",) else problem(terminal)
        assert "party.graph in the settings, or with --graph NAME" in message
    assert terminal.run("party", "data", "--config", settings, "--graph", "two words") == 2
    assert "letters, digits, dots, hyphens" in problem(terminal)
    assert terminal.run("party", "data", "--config", settings, "--resume") == 2
    assert "there is no run to resume" in problem(terminal)
    assert not list(ledgers_in(institutions.root))
    assert not (config.party.state / "session").exists()


def test_a_name_on_the_command_line_counts(
    terminal: "Terminal", institutions: "Institutions", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run reserves under this name, then its peer is lost."""

    def lose_the_peer(*args: object, **kwargs: object) -> None:
        raise PeerLostError("nobody is there")

    monkeypatch.setattr(data_process, "run_data_session", lose_the_peer)
    settings, _ = institutions.settings
    config = load_party_config(settings)
    approve(config.party.state, config.shared)
    assert terminal.run("party", "data", "--config", settings, "--graph", "december") == 4
    assert terminal.run("budget", "show", config.party.ledger, "--json") == 0
    (row,) = json.loads(terminal.out)["graphs"]
    assert (row["graph"], len(row["open_reservations"])) == ("december", 1)


def test_simulations_make_a_name_up(terminal: "Terminal", folders: Path) -> None:
    runs = folders / "runs"
    common = ("simulate", "--data", folders, "--set", "epochs=1", "--epsilon", 4)
    for name, expected in (((), "simulation"), (("--graph", "trial"), "trial")):
        out = runs / expected
        assert terminal.run(*common, *name, "--out", out) == 0
        assert terminal.run("budget", "show", out / "ledger.sqlite", "--json") == 0
        (row,) = json.loads(terminal.out)["graphs"]
        assert (row["graph"], row["simulated"]) == (expected, True)
        assert (row["open_reservations"], row["reserved_epsilon"]) == ([], 0)
    assert terminal.run(*common, "--graph", "two words", "--out", runs / "none") == 2
    assert "letters, digits, dots, hyphens" in problem(terminal)
    assert not (runs / "none").exists()


def test_simulated_and_secret_noise_never_share_a_name(terminal: "Terminal", folders: Path) -> None:
    """Certified entries of an account are secret; whoever knows a seed can remove its noise."""
    ledger, runs = folders / "all.sqlite", folders / "runs"
    named = ("--graph", "payments", "--ledger", ledger)
    simulate = ("simulate", "--data", folders, "--set", "epochs=1", "--epsilon", 4)
    export = ("release", "--data", folders / "data", "--epsilon", 4)
    assert terminal.run("degrees", folders, *named) == 0
    assert terminal.run(*simulate, "--out", runs / "a", *named) == 2
    assert "was charged for secret noise so far, got simulated noise" in problem(terminal)
    simulated_export = (*export, "--simulate-noise", "--out", runs / "b.parquet")
    assert terminal.run(*simulated_export, *named) == 2
    assert "expected none with simulated noise" in problem(terminal)

    trial = ("--graph", "trial", "--ledger", ledger)
    assert terminal.run(*simulate, "--out", runs / "c", *trial) == 0
    secret: list[tuple[object, ...]] = [
        ("degrees", folders),
        (*export, "--out", runs / "d.parquet"),
    ]
    for each in secret:
        assert terminal.run(*each, *trial) == 2
        assert "was charged for simulated noise so far, got secret noise" in problem(terminal)
    assert terminal.run("budget", "show", ledger, "--json") == 0
    shown = {row["graph"]: row for row in json.loads(terminal.out)["graphs"]}
    assert {name: row["simulated"] for name, row in shown.items()} == {
        "payments": False,
        "trial": True,
    }
    assert (shown["payments"]["releases"], shown["payments"]["spent_epsilon"]) == (1, 0.1)


def test_a_name_for_one_of_several_parties(terminal: "Terminal", folders: Path) -> None:
    settings = folders / "several.toml"
    settings.write_text('[[data_party]]\nname = "data"\n[[data_party]]\nname = "telecom"\n')
    common = ("simulate", "--data", folders, "--config", settings, "--out", folders / "run")
    assert terminal.run(*common, "--graph", "payments") == 2
    assert "--graph: expected one data party" in problem(terminal)
