"""`vesper preflight`: problems of a run, found before it starts."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_json, print_line, progress_display

WRONG_INPUT = 2


def preflight(
    config: Annotated[Path, typer.Option(help="This party's TOML file.")],
    wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds to wait for the peer, which must run it, too."),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check all that a run needs, without spending any budget.

    Checks files, budget, certificate, contract and the connection to the peer.
    """
    from vesper.deployment.config.multi_party_config import load_multi_party_config
    from vesper.deployment.preflight import Preflight

    table = load_multi_party_config(config)
    checks = []
    with progress_display() as progress:
        for settings in table.all_configs:
            if table.peer_settings and not as_json:
                is_own = settings is table.graph
                print_line("# own graph" if is_own else f"# with {settings.party.peer}")
            for check in Preflight(settings, wait=wait, progress=progress):
                checks.append(check)
                if not as_json:
                    print_line(f"{check.outcome:<8}{check.name:<12}{check.text}")
    failed = [check.name for check in checks if check.outcome == "FAILED"]
    if as_json:
        print_json({"passed": not failed, "checks": [asdict(check) for check in checks]})
    elif failed:
        print_line(f"FAILED: {', '.join(failed)}")
    else:
        print_line("PASSED")
    if failed:
        raise typer.Exit(WRONG_INPUT)
