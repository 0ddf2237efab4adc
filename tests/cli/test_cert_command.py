"""`vesper cert` as two institutions use it."""

import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal


@pytest.fixture
def authority(terminal: "Terminal", tmp_path: Path) -> Path:
    assert terminal.run("cert", "init", "--out", tmp_path / "ca", "--name", "ours") == 0
    assert "it never leaves this machine" in terminal.out
    return tmp_path / "ca"


def test_from_an_authority_to_a_certificate(
    terminal: "Terminal", tmp_path: Path, authority: Path
) -> None:
    hosts = ("--host", "bank.example", "--host", "10.0.0.7")
    arguments = ("cert", "request", "--name", "bank", *hosts, "--out", tmp_path / "tls", "--json")
    assert terminal.run(*arguments) == 0
    made = json.loads(terminal.out)
    assert stat.S_IMODE(Path(made["key"]).stat().st_mode) == 0o600
    out = tmp_path / "tls" / "bank.pem"
    approve = ("cert", "approve", "--authority", authority, "--request", made["request"])
    assert terminal.run(*approve, "--out", out, "--fingerprint", "ab" * 32) == 2
    assert "this is not the request that the party made" in terminal.err
    assert not out.exists()
    assert terminal.run(*approve, "--out", out, "--fingerprint", made["fingerprint"]) == 0
    assert "for 'bank' and hosts bank.example, 10.0.0.7, valid until" in terminal.out
    assert made["fingerprint"] in terminal.out
    assert terminal.run(*approve, "--out", out) == 2
    assert "will not be overwritten" in terminal.err
    again = (*approve, "--out", tmp_path / "again.pem", "--days", 3, "--json")
    assert terminal.run(*again) == 0
    assert json.loads(terminal.out)["name"] == "bank"


def test_wrong_input(terminal: "Terminal", tmp_path: Path, authority: Path) -> None:
    out = tmp_path / "out.pem"
    approve = ("cert", "approve", "--authority", authority, "--out", out, "--request")
    assert terminal.run(*approve, authority / "authority.pem") == 2
    assert "expected a certificate request" in terminal.err
    assert terminal.run(*approve, authority / "authority.key") == 2
    assert "found a private key" in terminal.err
    assert terminal.run("cert", "request", "--name", "a b", "--out", tmp_path) == 2
    assert "--name: expected one word" in terminal.err
    assert terminal.run("cert", "request", "--name", "bank", "--out", tmp_path) == 0
    (authority / "authority.key").chmod(0o644)
    assert terminal.run(*approve, tmp_path / "bank.csr") == 2
    assert "others can read" in terminal.err
    assert not out.exists()
