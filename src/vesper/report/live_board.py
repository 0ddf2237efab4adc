"""HTTP responses of `vesper board`. The run is read anew for each; nothing is written.

| request | response |
| --- | --- |
| GET / | the page, which keeps fetching its main part |
| GET /main | the main part of the page, from the current state of the run |
"""

from collections.abc import Callable
from html import escape
from pathlib import Path

from vesper.errors import VesperError
from vesper.report.board_page import BOARD_STYLE, SCRIPT, board_main, board_page
from vesper.report.live_run import read_run_status
from vesper.serving.http.server import HttpResponse, error_response, page_response, policy_of

POLICY = policy_of(script=SCRIPT, style=BOARD_STYLE)


class Board:
    """Answers requests about one run, from any thread.

    Args:
        run: folder of a simulation, or state folder of a party.
        failed: called with an internal error, whose details clients do not see.
    """

    def __init__(self, run: Path, *, failed: Callable[[Exception], None]) -> None:
        self._run, self._failed = run, failed

    def respond(self, method: str, path: str, kind: str, body: bytes) -> HttpResponse:
        """Answer one request; never raises."""
        path = path.partition("?")[0]
        if path not in ("/", "/main"):
            return error_response(404, "no such page", "open /")
        if method not in ("GET", "HEAD"):
            response = error_response(405, "expected GET", f"use GET {path}")
            return HttpResponse(405, response.content, headers={"Allow": "GET"})
        try:
            main = self._main()
        except Exception as error:  # a bug: details go to the terminal, not to clients
            self._failed(error)
            return error_response(500, "internal error", "see the terminal of `vesper board`")
        return page_response(board_page(main) if path == "/" else main, policy=POLICY)

    def _main(self) -> str:
        try:
            return board_main(read_run_status(self._run))
        except VesperError as error:  # the run existed when the board was started
            message = f"The run cannot be read: it was stopped and removed, or is damaged. {error}"
            return f'<p class="verdict warn" role="status">{escape(message)}</p>'
