"""`vesper party`: only this user can read what it writes, whatever the shell's umask."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.errors import InputError

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal
    from tests.conftest import Institutions


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    ("verb", "function"),
    [
        (["data"], "vesper.deployment.data_process.run_data_party"),
        (["label"], "vesper.deployment.label_process.run_label_party_with_peers"),
        (["data", "--answer"], "vesper.serving.embedding_server.serve_embeddings"),
    ],
    ids=str,
)
def test_only_this_user_can_read_its_files(
    institutions: "Institutions",
    terminal: "Terminal",
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    verb: list[str],
    function: str,
) -> None:
    def write(config: PartyConfig, **rest: Any) -> None:
        (tmp_path / "written").write_text("a secret")
        (tmp_path / "made").mkdir()
        raise InputError("enough")

    monkeypatch.setattr(function, write)
    settings = institutions.settings[verb[0] == "label"]
    assert terminal.run("party", *verb, "--config", settings) == 2
    assert (tmp_path / "written").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("role", ["data", "label"])
def test_an_interrupted_party_says_how_to_go_on(
    terminal: "Terminal",
    institutions: "Institutions",
    monkeypatch: pytest.MonkeyPatch,
    role: str,
) -> None:
    settings = institutions.settings[role == "label"]
    state = load_party_config(settings).party.state
    has_started = False

    def run(*arguments: object, **options: object) -> None:
        if has_started:
            state.mkdir(exist_ok=True)
            (state / "session").touch()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)  # is cut short

    monkeypatch.setattr("vesper.deployment.data_process.run_data_party", run)
    monkeypatch.setattr("vesper.deployment.label_process.run_label_party_with_peers", run)
    assert terminal.run("party", role, "--config", settings) == 130
    assert f"start it with `vesper party {role} --config {settings}`" in terminal.err
    has_started = True
    assert terminal.run("party", role, "--config", settings) == 130
    assert f"continue with `vesper party {role} --config {settings} --resume`" in terminal.err
