"""Choice of the engine: a setting of the run that changes no result."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from vesper.engine.engine import using
from vesper.errors import InputError
from vesper.progress import Progress, no_progress


class EngineName(StrEnum):
    """Name of an engine: this process, or workers of a Ray cluster."""

    LOCAL = "local"
    RAY = "ray"


@contextmanager
def use_engine(
    name: EngineName,
    *,
    address: str | None = None,
    num_workers: int | None = None,
    progress: Progress = no_progress,
) -> Iterator[None]:
    """Send heavy work to the engine that the user chose, for the duration of the context.

    Args:
        name: name of the engine.
        address: with Ray, address of a running cluster; None starts one on this machine.
        num_workers: with Ray, number of workers; None for one per core.
        progress: receives progress reports.

    Raises:
        InputError: the engine is not available.
    """
    if name is EngineName.LOCAL:
        if address is not None or num_workers is not None:
            raise InputError("ray address, ray workers: expected engine 'ray' with them")
        yield
        return
    from vesper.engine.ray_engine import RayEngine

    progress("starting workers", 0, 1)
    with RayEngine(address=address, num_workers=num_workers) as engine, using(engine):
        progress("starting workers", 1, 1)
        yield
