"""`vesper contract`: what both parties agree on, its digest, and this party's approval."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vesper.cli.console import print_json, say

if TYPE_CHECKING:
    from vesper.deployment.config.party_config import PartyConfig


def contract(
    config: Annotated[Path, typer.Option(help="This party's TOML file.")],
    approve: Annotated[bool, typer.Option("--approve", help="Approve it, for the run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the settings that both parties share, and approve them; one contract a data party."""
    from vesper.deployment.config.multi_party_config import load_table
    from vesper.session.contract import approve as write_approval
    from vesper.session.contract import changed_since_approval

    table = load_table(config)
    found = []
    for settings in table.everyone:
        changed = changed_since_approval(settings.party.state, settings.shared)
        if approve:
            write_approval(settings.party.state, settings.shared)
        found.append((settings, changed, approve or changed == []))
    if as_json:
        facts = {each[0].party.peer: _facts(*each) for each in found[: len(table.pairs)]}
        print_json({"data_parties": facts} if table.parties else _facts(*found[0]))
        return
    for settings, changed, is_approved in found[: len(table.pairs)]:
        if table.parties:
            say(f"# with {settings.party.peer}")
        _say(settings, changed, is_approved=is_approved)


def _facts(settings: "PartyConfig", changed: list[str] | None, is_approved: bool) -> dict[str, Any]:
    from vesper.session.contract import canonical

    return {
        "contract": settings.shared.contract,
        "approved": is_approved,
        "changed": changed or [],
        "settings": json.loads(canonical(settings.shared)),
    }


def _say(settings: "PartyConfig", changed: list[str] | None, *, is_approved: bool) -> None:
    from vesper.session.contract import approval_path, canonical

    for table, values in json.loads(canonical(settings.shared)).items():
        say(f"[{table}]")
        for key, value in values.items():
            say(f"{key} = {'(left to the method)' if value is None else json.dumps(value)}")
    say(f"contract {settings.shared.contract}")
    for line in changed or []:
        say(f"changed: {line}")
    if is_approved:
        path = approval_path(settings.party.state)
        say(f"approved in {path}; the peer must approve the same contract")
    else:
        say("not approved at this party; read it, and approve it with --approve")
