"""The board over HTTP and in a browser: it follows the run and warns when it loses the server."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from vesper.report import live_board as board_module
from vesper.report.live_board import Board
from vesper.serving.http.server import HttpResponse, HttpServer, Responder, error_response
from vesper.session.config import load_config
from vesper.session.journal import Journal, open_journal
from vesper.session.observer import EpochFacts

CONFIG = load_config(None, {})


def raise_again(error: Exception) -> None:
    raise AssertionError from error


def test_only_read_requests_are_accepted(tmp_path: Path) -> None:
    board = Board(tmp_path, failed=raise_again)
    with open_journal(tmp_path, side="label", config=CONFIG):
        page = board.respond("GET", "/?x=1", "", b"")
        main = board.respond("GET", "/main", "", b"")
    assert (page.status, main.status) == (200, 200)
    assert main.content in page.content
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert board.respond("HEAD", "/", "", b"").status == 200
    assert board.respond("POST", "/", "", b"{}").status == 405
    assert board.respond("GET", "/progress.jsonl", "", b"").status == 404


def test_a_run_that_was_removed(tmp_path: Path) -> None:
    response = Board(tmp_path / "gone", failed=raise_again).respond("GET", "/main", "", b"")
    assert response.status == 200
    assert b"it was stopped and removed" in response.content


def test_internal_errors_are_not_shown_to_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run: Path) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(board_module, "read_run_status", fail)
    failures: list[Exception] = []
    response = Board(tmp_path, failed=failures.append).respond("GET", "/main", "", b"")
    assert response.status == 500
    assert b"secret" not in response.content
    assert str(failures[0]) == "secret"


class TrainingBoard:
    """A board whose run has one more epoch each time the page is refreshed."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._board, self._journal, self._epoch = Board(folder, failed=raise_again), journal, 0

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        if path == "/main":
            facts = EpochFacts(
                stage=0, epoch=self._epoch, is_best=True, loss=0.5, validation=60.0 + self._epoch
            )
            self._journal.epoch(facts)
            self._epoch += 1
        return self._board.respond(method, path, kind, body)


class FailingBoard:
    """A board that serves the page, but not its refreshes."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self._board = Board(folder, failed=raise_again)

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        if path == "/main":
            return error_response(503, "gone", "come back")
        return self._board.respond(method, path, kind, body)


@contextmanager
def serving(service: Responder) -> Iterator[str]:
    with HttpServer("127.0.0.1", 0, service, log=lambda line: None) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def browsed(tmp_path: Path) -> Callable[[Responder], str]:
    """Opens a page in Chromium and returns its DOM after eight seconds of virtual time."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next((path for path in map(shutil.which, names) if path), None)
    if browser is None:
        pytest.skip("needs Chromium, which is not on this machine")

    def browse(service: Responder) -> str:
        with serving(service) as address:
            done = subprocess.run(
                [
                    browser,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-quic",
                    "--no-first-run",
                    "--disable-background-networking",
                    "--disable-component-update",
                    "--disable-sync",
                    f"--user-data-dir={tmp_path / 'profile'}",
                    "--virtual-time-budget=8000",
                    "--dump-dom",
                    address,
                ],
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            )
        return done.stdout

    return browse


def test_a_browser_follows_the_run(tmp_path: Path, browsed: Callable[[Responder], str]) -> None:
    with open_journal(tmp_path, side="label", config=CONFIG) as journal:
        page = browsed(TrainingBoard(tmp_path, journal))
    assert "ROC" not in page, "no metric was agreed on"
    best = float(page.partition(" %</b>")[0].rpartition("<b>")[2])
    assert best >= 62.0, "the page was refreshed more than once"
    assert page.count("<polyline") == 2
    assert 'role="alert" hidden' in page


def test_a_browser_warns_when_the_board_is_gone(
    tmp_path: Path, browsed: Callable[[Responder], str]
) -> None:
    with open_journal(tmp_path, side="label", config=CONFIG) as journal:
        page = browsed(FailingBoard(tmp_path, journal))
    assert "Running." in page, "the last known state is still shown"
    assert 'role="alert" hidden' not in page
    assert "vesper board was stopped" in page
