"""`vesper data`: make, convert and check party folders."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.console import print_json, print_table, progress_display
from vesper.errors import InputError

if TYPE_CHECKING:
    from vesper.datasets.block_model.simulate_graph import BlockModel

app = typer.Typer(help="Make, convert and check party folders.", no_args_is_help=True)

Nodes = Annotated[int | None, typer.Option(help="Number of nodes; default: as in the paper.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same data.")]
Out = Annotated[Path, typer.Option(help="New folder for data/ and label/.")]


@app.command()
def finance(out: Out, nodes: Nodes = None, seed: Seed = 0) -> None:
    """Simulate payments, with activity, fraud rings and mules."""
    from vesper.datasets.finance import simulate_finance

    size = {} if nodes is None else {"num_nodes": nodes}
    with progress_display() as progress:
        simulate_finance(out, seed=seed, progress=progress, **size)
    _print_written(out)


@app.command("products-like")
def products_like(out: Out, nodes: Nodes = None, seed: Seed = 0) -> None:
    """Simulate a co-purchase graph modelled on ogbn-products.

    It has the size and shape of the original.
    """
    from vesper.datasets.block_model.published_graphs import PRODUCTS_LIKE

    _simulate(PRODUCTS_LIKE, out, nodes, seed)


@app.command("reddit-like")
def reddit_like(out: Out, nodes: Nodes = None, seed: Seed = 0) -> None:
    """Simulate a graph of posts modelled on Reddit.

    It has the size and shape of the original.
    """
    from vesper.datasets.block_model.published_graphs import REDDIT_LIKE

    _simulate(REDDIT_LIKE, out, nodes, seed)


@app.command()
def convert(
    source: Annotated[
        Path, typer.Argument(help="Folder of ogbn-products or Reddit, or a neutral folder.")
    ],
    out: Out,
) -> None:
    """Convert a public data set on disk to party folders."""
    from vesper.datasets.loaders.convert import convert as run

    with progress_display() as progress:
        run(source, out, progress=progress)
    _print_written(out)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with data/ and label/, or one party's.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Check party folders, and count what is in them."""
    from vesper.graph.holdings import open_data
    from vesper.graph.labels import open_labels
    from vesper.graph.summary import summarize

    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder with data/ and label/, found none")
    inner = folder / "data" if (folder / "data").is_dir() else folder
    labels = open_labels(folder / "label") if (folder / "label").is_dir() else None
    with progress_display() as progress:
        data = open_data(inner, progress=progress)
    summary = asdict(summarize(data, labels))
    if as_json:
        print_json(summary)
        return
    rows = [[name.replace("_", " "), _text(value)] for name, value in summary.items()]
    print_table(str(folder), ["item", "count"], rows)


def _simulate(model: "BlockModel", out: Path, nodes: int | None, seed: int) -> None:
    from vesper.datasets.block_model.simulate_graph import simulate

    with progress_display() as progress:
        simulate(model, out, num_nodes=nodes, seed=seed, progress=progress)
    _print_written(out)


def _text(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _print_written(out: Path) -> None:
    typer.echo(f"wrote {out / 'data'} and {out / 'label'}")
