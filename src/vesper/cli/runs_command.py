"""`vesper runs`: the runs below a folder, with metric, epsilon, method and date."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table


def runs(
    folder: Annotated[Path, typer.Argument(help="Folder to search, with all folders below it.")],
    html: Annotated[
        Path | None, typer.Option(help="Also write the list as an HTML page to this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List the runs below a folder: simulations, and both parties' state folders.

    Runs in progress and runs that failed are listed as well.
    """
    from vesper.report.page import write_page
    from vesper.report.run_list import COLUMNS, UNREADABLE, cells_of, find_runs
    from vesper.report.run_list_page import render_runs
    from vesper.report.run_naming import run_name

    lines = find_runs(folder)
    if html is not None:
        write_page(render_runs(lines, name=run_name(folder)), html)
    if as_json:
        print_json([line.as_json() for line in lines])
        return
    if not lines:
        print_line(f"{folder}: no runs here; 'vesper simulate --out {folder}/NAME' makes one")
        return
    print_table(str(folder), COLUMNS, [cells_of(line) for line in lines])
    for line in lines:
        if line.state == UNREADABLE:
            typer.echo(f"note: {line.problem}", err=True)
    if html is not None:
        print_line(f"{html}")
