"""`vesper study`: grids of settings, and the paper's tables and figures beside ours."""

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
    help="Repeat the paper's tables and figures, or run a grid of your own.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Folder = Annotated[Path, typer.Argument(help="Folder of 'vesper study run --out'.")]


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="A name of 'vesper study list', or a TOML file.")],
    out: Annotated[
        Path, typer.Option(help="New folder, or that of the same study, to go on with.")
    ],
    small: Annotated[
        bool, typer.Option("--small", help="Small graphs, few seeds: minutes.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Holds a folder a set, such as products/; default: all are simulated."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes of one thread; default: one a core.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Default: as the study says.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds that one cell may take.")] = 14400.0,
    as_json: AsJson = False,
) -> None:
    """Run the cells of a study that are not finished yet, and print its table."""
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
            f"{len(failed)} cells have no result, see above; the same command tries them again"
        )
    if not as_json:
        print_line(f"results: {out / 'results.parquet'}; figures: vesper study figures {out}")


@app.command()
def table(
    folder: Folder,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Print what a study found so far, beside what the paper prints."""
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
    out: Annotated[Path | None, typer.Option(help="Where to; default: figures/ in it.")] = None,
) -> None:
    """Draw what a study found so far, as SVG."""
    from vesper.study.figures import write_figures
    from vesper.study.findings import findings_in

    for path in write_figures(findings_in(folder), out or folder / "figures"):
        print_line(f"wrote {path}")


@app.command("list")
def list_studies(as_json: AsJson = False) -> None:
    """List the studies that come with the package."""
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
        ["study", "what", "cells", "cells with --small"],
        [[str(value) for value in row.values()] for row in rows],
    )


def membership(config: "Config", folder: Path, out: Path) -> "Measurement":
    """Attack node membership; runs in the workers of a study, which cannot know of attacks."""
    from vesper.attack.node_membership import attack_membership
    from vesper.study.measure import Measurement

    out.mkdir()
    (out / "config.json").write_text(config.model_dump_json(), encoding="utf-8")
    found = attack_membership(out, folder, seed=config.run.seed)
    return Measurement(plan=found.plan, metric="AUC of the attack", test=100 * found.roc.auc)


def _print(findings: "Findings", as_json: bool) -> None:
    from vesper.study.findings import notes_of
    from vesper.study.table import tables_of

    if as_json:
        print_json(findings.as_json())
        return
    for each in tables_of(findings):
        print_table(each.title, each.columns, each.rows)
        print_line("")
    for note in notes_of(findings):
        print_line(note)
