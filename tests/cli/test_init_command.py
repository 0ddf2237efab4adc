"""`vesper init` on the command line."""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.config.party_config import load_party_config
from vesper.privacy.ledger.ledger_file import default_ledger

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


class Keyboard(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


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


def test_the_name_of_the_graph_and_the_ledger(terminal: "Terminal", tmp_path: Path) -> None:
    chosen, left_out = tmp_path / "chosen.toml", tmp_path / "left-out.toml"
    named = ("--graph", "payments-2026-11", "--ledger", "all.sqlite")
    assert terminal.run("init", "data", *named, "--out", chosen) == 0
    assert '\ngraph = "payments-2026-11"\n' in chosen.read_text()
    party = load_party_config(chosen).party
    assert (party.graph, party.ledger) == ("payments-2026-11", tmp_path / "all.sqlite")
    assert terminal.run("init", "data", "--out", left_out) == 0
    assert '\n#graph = "payments-2026-11"\n' in left_out.read_text()
    party = load_party_config(left_out).party
    assert (party.graph, party.ledger) == (None, default_ledger())


def test_a_person_at_a_terminal_is_prompted_for_the_name(
    terminal: "Terminal", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "data.toml"
    monkeypatch.setattr(sys, "stdin", Keyboard("payments-2026-12\n"))
    assert terminal.run("init", "data", "--out", out) == 0
    assert "Name of the graph to protect" in terminal.out + terminal.err
    assert '\ngraph = "payments-2026-12"\n' in out.read_text()
    assert load_party_config(out).party.graph == "payments-2026-12"


def test_nobody_is_prompted_who_has_given_the_name_or_has_no_graph(
    terminal: "Terminal", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard())
    for number, arguments in enumerate((("data", "--graph", "payments"), ("label",))):
        assert terminal.run("init", *arguments, "--out", tmp_path / f"{number}.toml") == 0
        assert "Name of the graph" not in terminal.out + terminal.err


def test_the_address_is_written(terminal: "Terminal", tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("label.toml", "listening.toml", "data.toml")]
    assert terminal.run("init", "label", "--connect", "127.0.0.1:7101", "--out", files[0]) == 0
    assert "is an example" not in terminal.out
    assert terminal.run("init", "label", "--listen", "0.0.0.0:7102", "--out", files[1]) == 0
    data = ("data", "--graph", "payments", "--connect", "bank.example:7102")
    assert terminal.run("init", *data, "--out", files[2]) == 0
    addresses = [
        (party.listen and str(party.listen), party.connect and str(party.connect))
        for party in (load_party_config(path).party for path in files)
    ]
    assert addresses == [
        (None, "127.0.0.1:7101"),
        ("0.0.0.0:7102", None),
        (None, "bank.example:7102"),
    ]


def test_an_example_of_an_address_is_marked_as_such(terminal: "Terminal", tmp_path: Path) -> None:
    assert terminal.run("init", "label", "--out", tmp_path / "label.toml") == 0
    assert "party.connect is an example" in terminal.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("label", "--connect", "platform.example"), "--connect: expected 'host:port'"),
        (("label", "--connect", "a:1", "--listen", "b:2"), "--listen, --connect: expected one"),
        (("data", "--graph", "two words"), "letters, digits"),
        (("data", "--graph", ""), "letters, digits"),
        (("label", "--graph", "payments"), "the label party's file has no graph"),
    ],
)
def test_unusable_names_write_no_file(
    terminal: "Terminal", tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert terminal.run("init", *arguments, "--out", tmp_path / "party.toml") == 2
    assert message in terminal.err
    assert list(tmp_path.iterdir()) == []
