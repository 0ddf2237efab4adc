"""`vesper simulate`: training with any method, both parties in this process."""

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vesper.cli.console import print_json, print_table, progress_display
from vesper.cli.setting_options import (
    EngineOption,
    MethodOption,
    PresetOption,
    RayAddressOption,
    RayWorkersOption,
    settings_from_options,
)
from vesper.engine.choice import EngineName, use_engine

if TYPE_CHECKING:
    from vesper.session.result import PrivacyFacts, SnapshotCost, SnapshotResult


def simulate(
    data: Annotated[Path, typer.Option(help="Folder with data/ and label/.")],
    out: Annotated[Path, typer.Option(help="New folder for the run.")],
    method: MethodOption = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget; default: 4.")] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta of the budget; default: the largest power of ten up to 1 / (10 nodes)."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Makes the run repeatable bit for bit, on the same number of threads."),
    ] = None,
    preset: PresetOption = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to charge; default: a new one in the run folder.")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(help="Name of the graph in the ledger; default: simulation.")
    ] = None,
    snapshot: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder like --data with a later graph; the trained model predicts its test "
            "nodes, with a budget of its own; repeatable."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML with [privacy] and [run], and [[data_party]] if there are several."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as key=value; repeatable.")
    ] = None,
    engine: EngineOption = EngineName.LOCAL,
    ray_address: RayAddressOption = None,
    ray_workers: RayWorkersOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train on party folders, with both parties in this process.

    Writes a run folder.
    """
    from vesper.errors import InputError
    from vesper.privacy.ledger.graph_name import expect_graph_name
    from vesper.session.data_parties import is_only_party, load_simulation

    overrides = settings_from_options(set_, method=method, epsilon=epsilon, delta=delta, seed=seed)
    settings, parties = load_simulation(config, overrides, preset=preset)
    if graph is not None:
        if not is_only_party(parties[0]):
            raise InputError("--graph: expected one data party; name each graph in its table")
        parties = (parties[0].model_copy(update={"graph": expect_graph_name(graph)}),)

    from vesper.method.registry import unused_settings  # loads torch: after the settings are right
    from vesper.simulation.simulate import simulate as run

    ignored = unused_settings(settings)
    if ignored:
        method = settings.run.method
        typer.echo(f"note: method {method} ignores {', '.join(ignored)}", err=True)
    with (
        progress_display() as progress,
        use_engine(engine, address=ray_address, num_workers=ray_workers, progress=progress),
    ):
        result = run(
            data,
            settings,
            out,
            ledger=ledger,
            snapshots=snapshot or (),
            parties=parties,
            progress=progress,
        )
    if as_json:
        print_json(result.as_json())
        return
    print_table(
        f"{out}",
        ["method", "plan", "epsilon", "noise", result.metric, "validation", "seconds"],
        [
            [
                result.method,
                result.privacy.plan_text,
                format_epsilon(result.privacy),
                f"{result.privacy.noise_std:.3f}" if result.privacy.noise_std else "-",
                f"{result.test:.2f}",
                f"{result.validation:.2f}",
                f"{result.seconds:.1f}",
            ]
        ],
    )
    if result.parties:
        print_table(
            "data parties, each with its own budget",
            ["party", "plan", "epsilon", "delta", "releases", "noise"],
            [
                [
                    f"{each.name} (the label party's own graph)" if each.own else each.name,
                    each.privacy.plan_text,
                    format_epsilon(each.privacy),
                    "-" if each.privacy.delta is None else f"{each.privacy.delta:g}",
                    f"{each.privacy.releases}",
                    f"{each.privacy.noise_std:.3f}" if each.privacy.noise_std else "-",
                ]
                for each in result.parties
            ],
        )
    if result.snapshots:
        print_table(
            "snapshots, each with its own budget",
            ["snapshot", "nodes", "epsilon", "spent", "delta", "releases", result.metric],
            [
                [
                    name,
                    f"{cost.num_nodes}",
                    "-" if cost.epsilon is None else f"{cost.epsilon:g}",
                    "-" if cost.spent_epsilon is None else f"{cost.spent_epsilon:.3g}",
                    "-" if cost.delta is None else f"{cost.delta:g}",
                    f"{cost.releases}",
                    f"{each.test:.2f}",
                ]
                for each in result.snapshots
                for name, cost in snapshot_costs(each)
            ],
        )
    typer.echo(f"noise: {result.privacy.noise}")


def format_epsilon(privacy: "PrivacyFacts") -> str:
    """Format the certified epsilon, or the claimed one, marked as such; "-" if there is neither."""
    if privacy.certified_epsilon is not None:
        return f"{privacy.certified_epsilon:g}"
    claimed = privacy.claimed_epsilon
    return f"claimed {claimed:g}" if claimed is not None and isfinite(claimed) else "-"


def snapshot_costs(snapshot: "SnapshotResult") -> list[tuple[str, "SnapshotCost"]]:
    """Return names and costs of a snapshot's graphs: one, or one per data party."""
    named = [(f"{snapshot.name}, {each.name}", each) for each in snapshot.parties]
    return named or [(snapshot.name, snapshot)]
