"""`vesper simulate`: train any method on party folders, both parties in this process."""

from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.settings_given import settings_given
from vesper.cli.show import print_json, print_table, shown_progress


def simulate(
    data: Annotated[Path, typer.Option(help="Folder with data/ and label/.")],
    out: Annotated[Path, typer.Option(help="New folder for the run.")],
    method: Annotated[
        str | None, typer.Option(help="How to learn, default vesper; any other name lists all.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget; default 4.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Default: a power of ten below 1 / (10 nodes).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeats a run bit for bit.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="The paper's sizes: products, reddit or finance.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to charge; default: a fresh one in the run folder.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML with [privacy] and [run].")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as key=value; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a method on party folders and write a run folder."""
    from vesper.run.config import load_config
    from vesper.run.simulate import simulate as run

    given = settings_given(set_, method=method, epsilon=epsilon, delta=delta, seed=seed)
    settings = load_config(config, given, preset=preset)
    with shown_progress() as progress:
        result = run(data, settings, out, ledger=ledger, progress=progress)
    if as_json:
        print_json(result.as_json())
        return
    certified = result.privacy.certified_epsilon
    epsilon_text = "-" if certified is None else f"{certified:g}"
    print_table(
        f"{out}",
        ["method", "plan", "epsilon", "noise", result.metric, "validation", "seconds"],
        [
            [
                result.method,
                result.privacy.plan,
                epsilon_text,
                f"{result.privacy.noise_std:.3f}" if result.privacy.noise_std else "-",
                f"{result.test:.2f}",
                f"{result.validation:.2f}",
                f"{result.seconds:.1f}",
            ]
        ],
    )
    typer.echo(f"noise: {result.privacy.noise}")
