"""`vesper prepare`: from transactions to party folders."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_table, progress_display


def prepare(
    transfers: Annotated[Path, typer.Option(help="Table: time, src, dst, amount.")],
    activity: Annotated[Path, typer.Option(help="Table: time, user, type, amount, channel.")],
    labels: Annotated[Path, typer.Option(help="Table: id, label, optional time.")],
    train_window: Annotated[str, typer.Option(help="FROM..TO, without TO itself.")],
    test_window: Annotated[str, typer.Option(help="FROM..TO, not overlapping the other window.")],
    out: Annotated[Path, typer.Option(help="New folder for data/ and label/.")],
    separate_windows: Annotated[
        bool,
        typer.Option(
            "--apart",
            help="Make a graph per window, in train/ and test/ of --out, with a budget each.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the choice of validation nodes.")] = 0,
    from_transfers: Annotated[
        list[str] | None,
        typer.Option(help="Column or activity type that is derived from transfers; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Make party folders from transfers, activity and labels.

    Nodes are users in one of two time windows, for training and for testing. Features are computed
    from activity alone: a feature derived from transfers, such as the number of counterparties,
    would reveal edges outside the guarantee.
    """
    from vesper.datasets.prepare.job import prepare as run

    with progress_display() as progress:
        prepared = run(
            transfers=transfers,
            activity=activity,
            labels=labels,
            train_window=train_window,
            test_window=test_window,
            out=out,
            seed=seed,
            transfer_columns=from_transfers or (),
            separate_windows=separate_windows,
            progress=progress,
        )
    counts = asdict(prepared)
    if as_json:
        print_json(counts)
        return
    rows = [[name.replace("_", " "), f"{value:,}"] for name, value in counts.items()]
    print_table(str(out), ["item", "count"], rows)
