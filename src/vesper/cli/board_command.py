"""`vesper board`: the report of a run in the browser, during training and afterwards."""

import traceback
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_line
from vesper.cli.interrupt import until_interrupted


def board(
    run: Annotated[
        Path, typer.Argument(help="Run folder of 'vesper simulate', or state folder of a party.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8081,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default accepts this machine only.")
    ] = "127.0.0.1",
) -> None:
    """Show a run in the browser, live while it trains.

    Serves a page until Ctrl-C; the run is only read.
    """
    from vesper.report.live_board import Board
    from vesper.report.live_run import read_run_status
    from vesper.serving.http.server import HttpServer

    def failed(error: Exception) -> None:
        typer.echo("".join(traceback.format_exception(error)), err=True)

    read_run_status(run)  # refuses a folder that is not a run
    with (
        until_interrupted(),
        HttpServer(host, port, Board(run, failed=failed), log=lambda line: None) as server,
    ):
        address = f"[{host}]" if ":" in host else host
        print_line(f"{run}: http://{address}:{server.server_port}/ ; stop with Ctrl-C")
        server.serve_forever()
    print_line("stopped")
