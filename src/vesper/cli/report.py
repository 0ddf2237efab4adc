"""`vesper report`: one HTML page about a run, for people who were not there."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.show import print_json, say


def report(
    run: Annotated[
        Path, typer.Argument(help="Run folder of 'vesper simulate', or state of a label party.")
    ],
    out: Annotated[Path, typer.Option(help="HTML file to write; an old one is replaced.")],
    ledger: Annotated[
        Path | None, typer.Option(help="The data party's ledger, where it is at hand.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Write a page about a run: metric, privacy in plain words, charts, settings."""
    from vesper.report.contents import contents_of_run
    from vesper.report.page import write_report

    contents = contents_of_run(run, ledger=ledger)
    path = write_report(contents, out)
    if as_json:
        print_json({"report": str(path), "is_private": contents.privacy.is_private})
        return
    say(f"{path}: {contents.privacy.verdict}")
