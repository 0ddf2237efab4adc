"""`vesper learn`: the label party trains on an exported file, alone or under torchrun."""

import os
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table, progress_display
from vesper.cli.setting_options import settings_from_options


def learn(
    released: Annotated[
        Path, typer.Option(help="File that `vesper release` wrote, with its statement.")
    ],
    labels: Annotated[Path, typer.Option(help="The label party's folder.")],
    out: Annotated[Path, typer.Option(help="New folder for the model.")],
    public_key: Annotated[
        str | None,
        typer.Option(help="The data party's public key, as received over another channel."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of [run], as key=value; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train on an exported file, at the label party.

    Under torchrun it uses several processes or machines.
    """
    from vesper.export.learner import learn as run
    from vesper.export.learner_ranks import ranks
    from vesper.progress import no_progress
    from vesper.session.config import load_config

    settings = load_config(None, settings_from_options(set_))
    is_first = os.environ.get("RANK", "0") == "0"
    with ranks() as group, progress_display() as progress:
        result = run(
            released,
            labels,
            settings,
            out,
            ranks=group,
            public_key=public_key,
            progress=progress if is_first else no_progress,
        )
    if not is_first:
        return
    if as_json:
        print_json(result.as_json())
        return
    test = "-" if result.test is None else f"{result.test:.2f}"
    print_table(
        f"{out}",
        ["rows", "columns", result.metric, "validation", "epochs", "processes", "seconds"],
        [
            [
                f"{result.rows}",
                f"{result.columns}",
                test,
                f"{result.validation:.2f}",
                f"{result.epochs}",
                f"{result.processes}",
                f"{result.seconds:.1f}",
            ]
        ],
    )
    facts = result.statement
    print_line(
        f"features: epsilon {facts['epsilon']:g}, delta {facts['delta']:g}, by their statement"
    )
    if facts["simulated"]:
        print_line("features: SIMULATED noise, not private; for rehearsals only")
