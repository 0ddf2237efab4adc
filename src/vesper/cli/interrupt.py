"""Verbs that run until Ctrl-C, which ends them normally instead of failing them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Interrupted(BaseException):
    """Ctrl-C or SIGTERM."""


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise _Interrupted


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Leave the block normally when the process is interrupted or terminated."""
    before = {
        number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    except _Interrupted:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
