"""`vesper init`: a party's settings, written down to be filled in."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vesper.cli.console import say


class Role(StrEnum):
    """Which party."""

    data = "data"
    label = "label"


def init(
    role: Annotated[Role, typer.Argument(help="data holds the graph, label the labels.")],
    out: Annotated[Path, typer.Option(help="New TOML file.")],
) -> None:
    """Write a party's settings with an explanation of each, to be filled in."""
    from vesper.deployment.config.template import write_init_file

    write_init_file(out, role.value)
    say(f"{out}: fill in [party] and [tls]; [privacy] and [run] must be equal at both parties")
