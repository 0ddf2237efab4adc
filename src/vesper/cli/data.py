"""`vesper data`: make, convert and check party folders."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.show import print_json, print_table, shown_progress
from vesper.errors import InputError

app = typer.Typer(help="Make, convert and check party folders.", no_args_is_help=True)

Nodes = Annotated[int | None, typer.Option(help="Number of nodes; default: as in the paper.")]
Seed = Annotated[int, typer.Option(help="Same seed, same data.")]
Out = Annotated[Path, typer.Option(help="New folder; gets data/ and label/.")]


@app.command()
def finance(out: Out, nodes: Nodes = None, seed: Seed = 0) -> None:
    """Simulate payments: users, transfers, activity, fraud rings and mules."""
    from vesper.datasets.finance import simulate_finance

    with shown_progress() as progress:
        simulate_finance(out, seed=seed, progress=progress, **_size(nodes))
    _done(out)


@app.command("products-like")
def products_like(out: Out, nodes: Nodes = None, seed: Seed = 0) -> None:
    """Simulate a co-purchase graph of the size and shape of ogbn-products."""
    from vesper.datasets.products_like import simulate_products_like

    with shown_progress() as progress:
        simulate_products_like(out, seed=seed, progress=progress, **_size(nodes))
    _done(out)


@app.command("reddit-like")
def reddit_like(out: Out, nodes: Nodes = None, seed: Seed = 0) -> None:
    """Simulate a post graph of the size and shape of Reddit."""
    from vesper.datasets.reddit_like import simulate_reddit_like

    with shown_progress() as progress:
        simulate_reddit_like(out, seed=seed, progress=progress, **_size(nodes))
    _done(out)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="Neutral folder, ogbn-products or Reddit folder.")],
    out: Out,
) -> None:
    """Turn public data on disk into party folders."""
    from vesper.datasets.convert import convert as run

    with shown_progress() as progress:
        run(source, out, progress=progress)
    _done(out)


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with data/ and label/, or one party's.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Read party folders, refuse what is wrong, count what is there."""
    from vesper.graph.holdings import open_data
    from vesper.graph.labels import open_labels
    from vesper.graph.summary import summarize

    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder with data/ and label/, found none")
    inner = folder / "data" if (folder / "data").is_dir() else folder
    with shown_progress() as progress:
        data = open_data(inner, progress=progress)
    labels = open_labels(folder / "label") if (folder / "label").is_dir() else None
    summary = asdict(summarize(data, labels))
    if as_json:
        print_json(summary)
        return
    rows = [[name.replace("_", " "), _text(value)] for name, value in summary.items()]
    print_table(str(folder), ["what", "how many"], rows)


def _text(value: float | int | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _size(nodes: int | None) -> dict[str, int]:
    return {} if nodes is None else {"num_nodes": nodes}


def _done(out: Path) -> None:
    typer.echo(f"wrote {out / 'data'} and {out / 'label'}")
