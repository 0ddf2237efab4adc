"""`vesper contract`: what both parties agree on, its digest, and this party's approval."""

import json
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.show import print_json, say


def contract(
    config: Annotated[Path, typer.Option(help="This party's TOML file.")],
    approve: Annotated[bool, typer.Option("--approve", help="Approve it, for the run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the settings that both parties share, and approve them."""
    from vesper.run.setup.contract import approval_path, canonical, changed_since_approval
    from vesper.run.setup.contract import approve as write_approval
    from vesper.run.setup.party_config import load_party_config

    settings = load_party_config(config)
    shared, state = settings.shared, settings.party.state
    changed = changed_since_approval(state, shared)
    if approve:
        write_approval(state, shared)
    tables = json.loads(canonical(shared))
    is_approved = approve or changed == []
    if as_json:
        facts = {"approved": is_approved, "changed": changed or []}
        print_json({"contract": shared.contract, **facts, "settings": tables})
        return
    for table, values in tables.items():
        say(f"[{table}]")
        for key, value in values.items():
            say(f"{key} = {'(left to the method)' if value is None else json.dumps(value)}")
    say(f"contract {shared.contract}")
    for line in changed or []:
        say(f"changed: {line}")
    if is_approved:
        say(f"approved in {approval_path(state)}; the peer must approve the same contract")
    else:
        say("not approved at this party; read it, and approve it with --approve")
