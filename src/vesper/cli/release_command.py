"""`vesper release`, released features as a signed file, and `vesper verify`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from vesper.cli.console import print_json, print_line, print_warning, progress_display
from vesper.cli.setting_options import (
    EngineOption,
    RayAddressOption,
    RayWorkersOption,
    settings_from_options,
)
from vesper.engine.choice import EngineName, use_engine

AsJson = Annotated[bool, typer.Option("--json", help="Print the statement as JSON.")]


def release(
    data: Annotated[
        Path, typer.Option(help="Folder with data/, and label/ if labels are used; or data/ alone.")
    ],
    epsilon: Annotated[float, typer.Option(help="Budget of the release; all of it is spent.")],
    out: Annotated[
        Path, typer.Option(help="New .parquet file; its .statement.json is written next to it.")
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            help="Delta of the budget; default: the largest power of ten up to 1 / (10 nodes)."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights and batches; noise stays secret.")
    ] = None,
    simulate_noise: Annotated[
        bool,
        typer.Option(
            "--simulate-noise",
            help="Draw noise from the seed: repeatable, not private, charged to no ledger.",
        ),
    ] = False,
    graph: Annotated[
        str | None,
        typer.Option(
            help="Name of the graph, to which its budget belongs; needed unless noise is simulated."
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to charge; default: one per user.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML with [privacy] and [run].")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting, as key=value; repeatable.")
    ] = None,
    engine: EngineOption = EngineName.LOCAL,
    ray_address: RayAddressOption = None,
    ray_workers: RayWorkersOption = None,
    as_json: AsJson = False,
) -> None:
    """Export certified features as a signed file, for any learner."""
    from vesper.export.writer import export_features
    from vesper.session.config import load_config

    overrides = settings_from_options(set_, epsilon=epsilon, delta=delta, seed=seed)
    settings = load_config(config, overrides)
    with (
        progress_display() as progress,
        use_engine(engine, address=ray_address, num_workers=ray_workers, progress=progress),
    ):
        written = export_features(
            data,
            settings,
            out,
            graph_name=graph,
            ledger=ledger,
            simulated=simulate_noise,
            progress=progress,
            warn=print_warning,
        )
    if as_json:
        print_json({**written.facts, "path": str(written.file), "names": list(written.columns)})
        return
    print_line(f"{written.file}: {written.facts['nodes']} rows, {len(written.columns)} columns")
    print_line(f"{written.statement}: " + _describe(written.facts))
    print_line(f"public key {written.facts['public_key']} (send it over another channel)")


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE.parquet", help="Exported file.")],
    public_key: Annotated[
        str | None,
        typer.Option(help="The data party's public key, as received over another channel."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check an exported file against its signed statement.

    Exits with 1 if either was changed.
    """
    from vesper.privacy.ledger.statement import verify_file

    facts = verify_file(file, public_key=public_key)
    if as_json:
        print_json({"valid": True, "key_was_given": public_key is not None, **facts})
        return
    print_line(f"{file}: unchanged since it was signed; " + _describe(facts))
    if public_key is None:
        print_line(
            f"signed with {facts['public_key']}; to check whose key that is, give --public-key "
            f"with a key received over another channel"
        )


def _describe(facts: dict[str, Any]) -> str:
    if facts["simulated"]:
        return "SIMULATED noise, not private"
    return (
        f"epsilon {facts['epsilon']:g}, delta {facts['delta']:g} for one {facts['relation']}, "
        f"{len(facts['releases'])} releases"
    )
