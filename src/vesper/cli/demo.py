"""`vesper demo`: the main job end to end on simulated finance data."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.show import print_table, shown_progress
from vesper.errors import InputError

MARK = ".made-by-vesper-demo"


def demo(
    nodes: Annotated[int, typer.Option(help="Size of the simulated graph.")] = 20_000,
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 4.0,
    out: Annotated[
        Path, typer.Option(help="Folder for data and runs; an old demo is replaced.")
    ] = (Path("demo")),
) -> None:
    """Simulate payments, train with and without the graph, compare."""
    from vesper.datasets.finance import simulate_finance
    from vesper.run.config import load_config
    from vesper.run.simulate import simulate

    _make_room(out)
    typer.echo(f"1/3 simulating a payment platform with {nodes:,} users", err=True)
    with shown_progress() as progress:
        simulate_finance(out / "finance", num_nodes=nodes, seed=0, progress=progress)
    rows = []
    explained = {"mlp": "without the graph", "vesper": f"with the graph, epsilon {epsilon:g}"}
    for step, (method, what) in enumerate(explained.items(), start=2):
        typer.echo(f"{step}/3 training {what}", err=True)
        config = load_config(None, {"method": method, "epsilon": epsilon})
        with shown_progress() as progress:
            result = simulate(out / "finance", config, out / f"run-{method}", progress=progress)
        noise = result.privacy.noise_std
        rows.append(
            [
                method,
                result.privacy.plan,
                f"{result.privacy.certified_epsilon:g}" if noise else "no edge is read",
                f"{noise:.2f}" if noise else "-",
                f"{result.test:.1f}",
            ]
        )
    columns = ["method", "plan", "certified epsilon", "noise a unit message", "test ROC-AUC"]
    print_table(f"Who is risky? Simulated payments, {nodes:,} users", columns, rows)
    typer.echo(f"Data, models and ledger are in {out}. Try: vesper budget show ", nl=False)
    typer.echo(out / "run-vesper" / "ledger.sqlite")


def _make_room(out: Path) -> None:
    """Remove an old demo; refuse to touch anything else."""
    if out.exists() and any(out.iterdir()):
        if not (out / MARK).is_file():
            raise InputError(
                f"{out}: expected a new folder or an old demo; name another with --out"
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).touch()
