"""Ctrl-C and SIGTERM: they end a verb as an exception, once what it was doing is undone.

Libraries may turn the exception into one of their own (DuckDB does), or lose it where Python cannot
raise (in `__del__`). The first is recognised by what happened before; after the second, the signal
is repeated.

A verb that can be continued says how: an inner `interruptible` gives its advice to the exception.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALS = (signal.SIGINT, signal.SIGTERM)
REPEAT_SECONDS = 0.05


DISCARDED = "incomplete output was removed"


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM. Typer would turn a KeyboardInterrupt into exit code 1."""

    def __init__(self, advice: str = DISCARDED) -> None:
        super().__init__(advice)


def _no_advice() -> str:
    return DISCARDED


@contextmanager
def interruptible(advice: Callable[[], str] = _no_advice) -> Iterator[None]:
    """Raise Interrupted in the block on Ctrl-C and SIGTERM, and nothing else after it.

    Args:
        advice: returns what became of the work, and how to go on; called after an interruption.
    """
    is_interrupted = False

    def interrupt(signum: int, frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        raise Interrupted

    def repeat_if_lost(lost: "UnraisableHookArgs") -> None:
        if isinstance(lost.exc_value, Interrupted):
            signal.setitimer(signal.ITIMER_REAL, REPEAT_SECONDS)
        elif not is_interrupted:
            sys.__unraisablehook__(lost)

    hook, sys.unraisablehook = sys.unraisablehook, repeat_if_lost
    before = {each: signal.signal(each, interrupt) for each in (*SIGNALS, signal.SIGALRM)}
    try:
        yield
    except BaseException as error:
        if is_interrupted and not _is_success(error):
            raise Interrupted(advice()) from None
        raise
    finally:
        sys.unraisablehook = hook
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)


def _is_success(error: BaseException) -> bool:
    """Whether a verb ended normally although it was interrupted: at its very end."""
    return isinstance(error, SystemExit) and error.code in (0, None)


@contextmanager
def until_interrupted() -> Iterator[None]:
    """Leave the block normally when the process is interrupted or terminated.

    Verbs that run until Ctrl-C end normally with it instead of failing.
    """
    try:
        with interruptible():
            yield
    except Interrupted:
        pass
