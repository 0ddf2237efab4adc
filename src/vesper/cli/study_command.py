"""`vesper study`: grids of settings; the paper's tables and figures next to ours."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table, progress_display
from vesper.errors import VesperError

if TYPE_CHECKING:
    from vesper.method.settings import Config
    from vesper.study.findings import Findings
    from vesper.study.measure import Measurement

app = typer.Typer(
    help="Reproduce the paper's tables and figures, or run any grid.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Folder = Annotated[Path, typer.Argument(help="Folder from 'vesper study run --out'.")]


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="Name from 'vesper study list', or a TOML file.")],
    out: Annotated[Path, typer.Option(help="New folder, or one of the same study to continue.")],
    small: Annotated[
        bool, typer.Option("--small", help="Small graphs, few seeds: minutes.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with one folder per data set, such as products/; default: simulate all."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of single-threaded processes; default: one per core.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Number of seeds; default: as in the study.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Time limit of one cell in seconds.")] = 14400.0,
    as_json: AsJson = False,
) -> None:
    """Run a study, or continue it, and print its table."""
    import os

    from vesper.study.findings import findings_in
    from vesper.study.measure import MEASURES
    from vesper.study.study import StudyRequest, run_study

    request = StudyRequest(
        study=study,
        out=out,
        small=small,
        data=data,
        workers=workers if workers is not None else os.cpu_count() or 1,
        seeds=seeds,
        limit=limit,
    )
    with progress_display() as progress:
        failed = run_study(
            request, measures=MEASURES | {"membership": membership}, progress=progress
        )
    _print(findings_in(out), as_json)
    if failed:
        raise VesperError(
            f"{len(failed)} cells have no result, see above; run the same command to retry them"
        )
    if not as_json:
        print_line(f"results: {out / 'results.parquet'}; figures: vesper study figures {out}")


@app.command()
def table(
    folder: Folder,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Print a study's results so far, next to the paper's."""
    from vesper.study.findings import findings_in
    from vesper.study.table import as_markdown

    findings = findings_in(folder)
    if markdown:
        print_line(as_markdown(findings))
    else:
        _print(findings, as_json)


@app.command()
def figures(
    folder: Folder,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write to; default: figures/ in the study's folder."),
    ] = None,
) -> None:
    """Draw a study's results so far, as SVG."""
    from vesper.study.figures import write_figures
    from vesper.study.findings import findings_in

    for path in write_figures(findings_in(folder), out or folder / "figures"):
        print_line(f"wrote {path}")


@app.command("list")
def list_studies(as_json: AsJson = False) -> None:
    """List the built-in studies."""
    from vesper.study.parameter_grid import names_of
    from vesper.study.presets import NAMES, find_grid

    rows = []
    for name in NAMES:
        grid = find_grid(name)[1]
        full, few = (len(set(names_of(grid, small=small))) for small in (False, True))
        cells = {"cells": full * grid.seeds, "cells_small": few * grid.small.seeds}
        rows.append({"study": name, "title": grid.title, **cells})
    if as_json:
        print_json(rows)
        return
    print_table(
        "studies",
        ["study", "title", "cells", "cells with --small"],
        [[str(value) for value in row.values()] for row in rows],
    )


def membership(config: "Config", folder: Path, out: Path) -> "Measurement":
    """Measure node membership inference, for workers of a study, which may not import attacks."""
    from vesper.attack.node_membership import attack_membership
    from vesper.study.measure import Measurement

    out.mkdir()
    (out / "config.json").write_text(config.model_dump_json(), encoding="utf-8")
    result = attack_membership(out, folder, seed=config.run.seed)
    return Measurement(plan=result.plan, metric="AUC of the attack", test=100 * result.roc.auc)


def _print(findings: "Findings", as_json: bool) -> None:
    from vesper.study.notes import notes_of
    from vesper.study.table import tables_of

    if as_json:
        print_json(findings.as_json())
        return
    for each in tables_of(findings):
        print_table(each.title, each.columns, each.rows)
        print_line("")
    for note in notes_of(findings):
        print_line(note)
