"""`vesper release` and `vesper verify`: released features as a file, with a signed statement."""

from pathlib import Path
from typing import Annotated, Any

import typer

from vesper.cli.console import print_json, print_line, progress_display
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
        Path, typer.Option(help="Folder with data/, and label/ if labels are lent; or data/ alone.")
    ],
    epsilon: Annotated[float, typer.Option(help="Budget of the graph; all of it is used.")],
    out: Annotated[
        Path, typer.Option(help="New file, .parquet; gets a .statement.json beside it.")
    ],
    delta: Annotated[
        float | None, typer.Option(help="Default: a power of ten below 1 / (10 nodes).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Simulate: noise from this seed, repeatable, not private.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Ledger to charge; default: ledger.sqlite beside the data party's data."),
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
    """Write the data party's certified released features, for any learner."""
    from vesper.export.writer import export_features
    from vesper.session.config import load_config

    overrides = settings_from_options(set_, epsilon=epsilon, delta=delta, seed=seed)
    settings = load_config(config, overrides)
    with (
        progress_display() as progress,
        use_engine(engine, address=ray_address, num_workers=ray_workers, progress=progress),
    ):
        written = export_features(
            data, settings, out, ledger=ledger, simulated=seed is not None, progress=progress
        )
    if as_json:
        print_json({**written.facts, "path": str(written.file), "names": list(written.columns)})
        return
    print_line(f"{written.file}: {written.facts['nodes']} rows, {len(written.columns)} columns")
    print_line(f"{written.statement}: " + _describe(written.facts))
    print_line(f"public key {written.facts['public_key']} (tell it the label party by another way)")


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE.parquet", help="The released file.")],
    public_key: Annotated[
        str | None, typer.Option(help="The data party's key, as it was told by another way.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a released file against its statement; a change ends with exit code 1."""
    from vesper.privacy.ledger.statement import verify_file

    facts = verify_file(file, public_key=public_key)
    if as_json:
        print_json({"valid": True, "key_was_given": public_key is not None, **facts})
        return
    print_line(f"{file}: as it was signed; " + _describe(facts))
    if public_key is None:
        print_line(
            f"signed with {facts['public_key']}; whose key that is only --public-key with a key "
            f"from elsewhere can show"
        )


def _describe(facts: dict[str, Any]) -> str:
    if facts["simulated"]:
        return "SIMULATED noise, not private"
    return (
        f"epsilon {facts['epsilon']:g}, delta {facts['delta']:g} for one {facts['relation']}, "
        f"{len(facts['releases'])} releases"
    )
