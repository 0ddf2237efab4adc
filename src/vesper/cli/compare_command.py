"""`vesper compare`: runs side by side, with what differs between their settings."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders of 'vesper simulate', or state folders of a party."),
    ],
    html: Annotated[
        Path | None,
        typer.Option(help="Also write an HTML page, with the epsilon-utility curve, to this file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare two or more finished runs.

    Shows metrics, guarantees, charges and the settings that differ, side by side.
    """
    from vesper.report.comparison import compare_runs
    from vesper.report.comparison_page import (
        charge_rows,
        comparison_rows,
        render_comparison,
        setting_rows,
    )
    from vesper.report.page import write_page

    comparison = compare_runs(runs)
    if html is not None:
        write_page(render_comparison(comparison), html)
    if as_json:
        print_json(comparison.as_json())
        return
    columns = ["", *comparison.names]
    print_table("results", columns, comparison_rows(comparison))
    if settings := setting_rows(comparison):
        print_table("settings that differ", columns, settings)
    if charges := charge_rows(comparison):
        print_table("charges", columns, charges)
    if html is not None:
        print_line(f"{html}")
