"""`vesper serve`: predictions over HTTP, at the label party."""

import traceback
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_line
from vesper.cli.interrupt import until_interrupted


def serve(
    config: Annotated[Path, typer.Option(help="The label party's TOML file.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8080,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default accepts this machine only.")
    ] = "127.0.0.1",
) -> None:
    """Serve predictions as JSON over HTTP, until Ctrl-C.

    The page at / describes the requests.
    """
    from vesper.cli.party_command import load_label_settings
    from vesper.serving.http.server import HttpServer
    from vesper.serving.http.service import Service
    from vesper.serving.multi_party_predictor import open_predictor

    table = load_label_settings(config)

    def log(line: str) -> None:
        typer.echo(line, err=True)

    def failed(error: Exception) -> None:
        typer.echo("".join(traceback.format_exception(error)), err=True)

    with until_interrupted(), open_predictor(table) as predictor:
        peers = " and ".join(pair.party.peer for pair in table.peer_configs)
        service = Service(predictor, peer=peers, failed=failed)
        with HttpServer(host, port, service, log=log) as server:
            address = f"[{host}]" if ":" in host else host
            print_line(f"serving at http://{address}:{server.server_port}/ ; stop with Ctrl-C")
            server.serve_forever()
    print_line("stopped")
