"""`vesper audit`: a lower bound on what a method leaks about one edge or one node."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, print_table, progress_display
from vesper.cli.setting_options import MethodOption, settings_from_options


def audit(
    method: MethodOption = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget; default: 4.")] = None,
    trials: Annotated[
        int, typer.Option(help="Runs with each canary, and as many without it.")
    ] = 50,
    delta: Annotated[
        float | None, typer.Option(help="Delta of the budget; default: from the number of nodes.")
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "--probe",
            help="Rows to examine: of training nodes (rows), of validation nodes (held-out), or "
            "later rows that follow from trained weights (weights).",
        ),
    ] = "rows",
    canaries: Annotated[
        int, typer.Option(help="Canaries per run, where it can have several.")
    ] = 20,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Canary: an edge, or a node with all its edges; default: what is protected."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with data/ and label/; default: a small graph in memory."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence level of the bound.")] = 0.95,
    claim: Annotated[
        float | None, typer.Option(help="Epsilon to test, if not the one that the method states.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes the audit repeatable.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML with [privacy] and [run].")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as key=value; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compute a lower bound on what a method leaks.

    Runs the method many times, with and without canaries.
    """
    from vesper.audit.command import run_audit

    overrides = settings_from_options(set_, method=method, epsilon=epsilon, delta=delta, seed=seed)
    with progress_display() as progress:
        result = run_audit(
            overrides,
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
        print_json(result.as_json())
        return
    certified = result.certified_epsilon
    print_table(
        f"{result.method}: {result.verdict}",
        [
            "plan",
            "epsilon at least",
            "claimed",
            "certified",
            "delta",
            "confidence",
            "detected",
            "false alarms",
        ],
        [
            [
                result.plan,
                f"{result.epsilon_lower_bound:.3g}",
                "-" if result.claimed_epsilon is None else f"{result.claimed_epsilon:g}",
                "-" if certified is None else f"{certified:g}",
                f"{result.delta:g}",
                f"{result.confidence:g}",
                f"{result.detections}/{result.observations}",
                f"{result.false_alarms}/{result.observations}",
            ]
        ],
    )
    print_line(f"for one {result.unit}; by the {result.statistic}; assumes {result.assumes}")
    if result.verdict == "not covered":
        print_line(f"the guarantee is for one {result.protects}; it does not cover a node")
