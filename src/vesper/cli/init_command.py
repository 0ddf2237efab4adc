"""`vesper init`: a template of a party's settings."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import print_line


class RoleArgument(StrEnum):
    """Role of a party."""

    data = "data"
    label = "label"


def init(
    role: Annotated[
        RoleArgument, typer.Argument(help="data: holds the graph; label: holds the labels.")
    ],
    out: Annotated[Path, typer.Option(help="New TOML file.")],
) -> None:
    """Write a template of a party's settings.

    The file explains each setting.
    """
    from vesper.deployment.config.template import write_template

    write_template(out, role.value)
    print_line(
        f"{out}: fill in [party] and [tls]; [privacy] and [run] must be equal at both parties"
    )
