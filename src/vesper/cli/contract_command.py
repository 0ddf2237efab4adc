"""`vesper contract`: the shared settings, their digest, and this party's approval."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vesper.cli.console import print_json, print_line

if TYPE_CHECKING:
    from vesper.deployment.config.party_config import PartyConfig


def contract(
    config: Annotated[Path, typer.Option(help="This party's TOML file.")],
    approve: Annotated[
        bool, typer.Option("--approve", help="Approve the contract, so that a run can start.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the settings that both parties share, and approve them.

    There is one contract per data party.
    """
    from vesper.deployment.config.multi_party_config import load_multi_party_config
    from vesper.session.contract import approve as write_approval
    from vesper.session.contract import changes_since_approval

    table = load_multi_party_config(config)
    contracts = []
    for settings in table.all_configs:
        changed = changes_since_approval(settings.party.state, settings.shared)
        if approve:
            write_approval(settings.party.state, settings.shared)
        contracts.append((settings, changed, approve or changed == []))
    if as_json:
        facts = {
            entry[0].party.peer: _facts(*entry) for entry in contracts[: len(table.peer_configs)]
        }
        print_json({"data_parties": facts} if table.peer_settings else _facts(*contracts[0]))
        return
    for settings, changed, is_approved in contracts[: len(table.peer_configs)]:
        if table.peer_settings:
            print_line(f"# with {settings.party.peer}")
        _print_contract(settings, changed, is_approved=is_approved)


def _facts(settings: "PartyConfig", changed: list[str] | None, is_approved: bool) -> dict[str, Any]:
    from vesper.session.contract import contract_text

    return {
        "contract": settings.shared.contract,
        "approved": is_approved,
        "changed": changed or [],
        "settings": json.loads(contract_text(settings.shared)),
    }


def _print_contract(
    settings: "PartyConfig", changed: list[str] | None, *, is_approved: bool
) -> None:
    from vesper.session.contract import approval_path, contract_text

    for table, values in json.loads(contract_text(settings.shared)).items():
        print_line(f"[{table}]")
        for key, value in values.items():
            if key == "seed":
                continue  # of no noise; printed below in words, so that nobody takes it for one
            print_line(
                f"{key} = {'(chosen by the method)' if value is None else json.dumps(value)}"
            )
    print_line(
        f"(number {settings.shared.run.seed} decides on first weights and the order of batches; "
        f"noise comes from the operating system)"
    )
    print_line(f"contract {settings.shared.contract}")
    for line in changed or []:
        print_line(f"changed: {line}")
    if is_approved:
        path = approval_path(settings.party.state)
        print_line(f"approved in {path}; the peer must approve the same contract")
    else:
        print_line("not approved by this party; read it, and approve it with --approve")
