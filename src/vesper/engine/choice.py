"""Which engine the user asked for: a setting of the run that changes no number."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from vesper.engine.engine import using
from vesper.errors import InputError
from vesper.progress import Progress, no_progress


class EngineName(StrEnum):
    """This process, or workers of a Ray cluster."""

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
    """Send heavy work where the user wants it, as long as the context lasts.

    Args:
        name: of the engine.
        address: with Ray, of a cluster that is there; None: one is made here.
        num_workers: with Ray, how many; None: one a core.
        progress: is told that workers are being started: it takes seconds.

    Raises:
        InputError: the engine cannot be had.
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
