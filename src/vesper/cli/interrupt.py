"""Verbs that run until they are stopped: Ctrl-C is how they end, not how they fail."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Stopped(BaseException):
    """Ctrl-C, or the end that a service manager asks for."""


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _Stopped


@contextmanager
def until_stopped() -> Iterator[None]:
    """Leave the block when the process is interrupted or terminated."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _Stopped:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
