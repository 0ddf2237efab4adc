"""`vesper demo`: the main job end to end on simulated finance data."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.show import print_table, shown_progress


def demo(
    nodes: Annotated[int, typer.Option(help="Size of the simulated graph.")] = 20_000,
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 4.0,
    out: Annotated[Path, typer.Option(help="Folder for data and runs; made anew.")] = Path("demo"),
) -> None:
    """Simulate payments, train with and without the graph, compare."""
    from vesper.datasets.finance import simulate_finance
    from vesper.run.config import load_config
    from vesper.run.simulate import simulate

    if out.exists():
        shutil.rmtree(out)
    rows = []
    with shown_progress() as progress:
        simulate_finance(out / "finance", num_nodes=nodes, seed=0, progress=progress)
    for method in ("mlp", "vesper"):
        typer.echo(f"training: {method}", err=True)
        config = load_config(None, {"method": method, "epsilon": epsilon})
        with shown_progress() as progress:
            result = simulate(out / "finance", config, out / f"run-{method}", progress=progress)
        spent = result.privacy.certified_epsilon
        rows.append([method, result.privacy.plan, f"{spent:g}", f"{result.test:.2f}"])
    print_table("finance, simulated", ["method", "plan", "certified epsilon", "ROC-AUC"], rows)
