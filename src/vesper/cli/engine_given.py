"""Options that say where the data party's heavy work runs; they change no number."""

from typing import Annotated

import typer

from vesper.engine.choice import EngineName

EngineOption = Annotated[
    EngineName,
    typer.Option(help="Where releases are computed: this process, or workers of Ray."),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(help="With --engine ray: a cluster, host:port or auto; default: one made here."),
]
RayWorkersOption = Annotated[
    int | None, typer.Option(help="With --engine ray: how many workers; default: one a core.")
]
