"""`vesper audit`: a lower bound on what a method leaks about one edge, or one node."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table, progress_display
from vesper.cli.setting_options import settings_from_options


def audit(
    method: Annotated[str | None, typer.Option(help="What to audit; default vesper.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget; default 4.")] = None,
    trials: Annotated[int, typer.Option(help="Runs with each canary, and as many without.")] = 50,
    delta: Annotated[float | None, typer.Option(help="Default: from the number of nodes.")] = None,
    target: Annotated[
        str,
        typer.Option("--target", "--probe", help="Where to look: rows, held-out or weights."),
    ] = "rows",
    canaries: Annotated[int, typer.Option(help="Canaries in a run, where they can be.")] = 20,
    unit: Annotated[
        str | None,
        typer.Option(
            help="A canary is an edge, or a node with all its edges; default: what is protected."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with data/ and label/; default: a small graph in memory."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the bound.")] = 0.95,
    claim: Annotated[
        float | None, typer.Option(help="What was said of it, if not what the method promises.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeats an audit.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML with [privacy] and [run].")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as key=value; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Bound from below what a method leaks, by running it with and without canaries."""
    from vesper.audit.command import run_audit

    given = settings_from_options(set_, method=method, epsilon=epsilon, delta=delta, seed=seed)
    with progress_display() as progress:
        found = run_audit(
            given,
            config=config,
            data=data,
            target=target,
            canaries=canaries,
            unit=unit,
            trials=trials,
            confidence=confidence,
            claim=claim,
            progress=progress,
        )
    if as_json:
        print_json(found.as_json())
        return
    promised = found.certified_epsilon
    print_table(
        f"{found.method}: {found.verdict}",
        [
            "plan",
            "epsilon at least",
            "claimed",
            "certified",
            "delta",
            "confidence",
            "found",
            "false",
        ],
        [
            [
                found.plan,
                f"{found.epsilon_lower_bound:.3g}",
                "-" if found.claimed_epsilon is None else f"{found.claimed_epsilon:g}",
                "-" if promised is None else f"{promised:g}",
                f"{found.delta:g}",
                f"{found.confidence:g}",
                f"{found.detections}/{found.observations}",
                f"{found.false_alarms}/{found.observations}",
            ]
        ],
    )
    print_line(f"about one {found.unit}, by the {found.statistic}; assumes {found.assumes}")
    if found.verdict == "not covered":
        print_line(f"what is promised is about one {found.protects}: it does not cover a node")
