"""`vesper init`: a template of a party's settings."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_line
from vesper.errors import InputError


class RoleArgument(StrEnum):
    """Role of a party."""

    data = "data"
    label = "label"


def init(
    role: Annotated[
        RoleArgument, typer.Argument(help="data: holds the graph; label: holds the labels.")
    ],
    out: Annotated[Path, typer.Option(help="New TOML file.")],
    graph: Annotated[
        str | None,
        typer.Option(
            help="Data party: name of the graph, to which its budget belongs, e.g. payments-2026."
        ),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger; default: one per user, for all runs.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Address at which this party waits for the other, e.g. 0.0.0.0:7101."),
    ] = None,
    connect: Annotated[
        str | None,
        typer.Option(help="Address at which the other party listens, e.g. platform.example:7101."),
    ] = None,
) -> None:
    """Write a template of a party's settings.

    The file explains each setting. On a terminal it asks for the name of the graph.
    """
    from vesper.deployment.config.party_config import expect_address
    from vesper.deployment.config.template import write_template
    from vesper.privacy.ledger.graph_name import expect_graph_name

    if role is RoleArgument.label and graph is not None:
        raise InputError("--graph: expected with 'data' only: the label party's file has no graph")
    if role is RoleArgument.data and graph is None and sys.stdin.isatty():
        graph = typer.prompt("Name of the graph to protect, such as payments-2026-11")
    if graph is not None:
        expect_graph_name(graph)
    if listen is not None and connect is not None:
        raise InputError(
            "--listen, --connect: expected one of them; the other party sets the other"
        )
    for option, address in (("--listen", listen), ("--connect", connect)):
        if address is not None:
            expect_address(option, address)
    write_template(out, role.value, graph=graph, ledger=ledger, listen=listen, connect=connect)
    print_line(f"{out}: check [party] and [tls]; [privacy] and [run] must be equal at both parties")
    if role is RoleArgument.label and listen is None and connect is None:
        print_line(
            "party.connect is an example: set it to the address at which the data party listens, "
            "or give it here with --connect"
        )
