"""Ctrl-C is never lost, and nothing that follows from it is reported as another error."""

import os
import signal
import sys
import time

import pytest

from vesper.cli.interrupt import Interrupted, interruptible, until_interrupted


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)  # is cut short


def handlers() -> list[object]:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    return [*map(signal.getsignal, signals), sys.unraisablehook]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_raised_in_the_block_and_handlers_are_restored(number: signal.Signals) -> None:
    before = handlers()
    with pytest.raises(Interrupted), interruptible():
        os.kill(os.getpid(), number)
    with until_interrupted():
        os.kill(os.getpid(), number)
    assert handlers() == before


def test_an_inner_block_says_how_to_go_on() -> None:
    outer, inner = interruptible(), interruptible(lambda: "continue with --resume")
    with pytest.raises(Interrupted, match="continue with --resume"), outer, inner:
        interrupt()
    with pytest.raises(Interrupted, match="incomplete output was removed"), interruptible():
        interrupt()


def turn_into_another_error() -> None:
    try:
        interrupt()
    except Interrupted:
        raise RuntimeError("Query interrupted") from None


def test_errors_that_follow_from_it_are_not_reported() -> None:
    with pytest.raises(Interrupted), interruptible():
        turn_into_another_error()
    with until_interrupted():
        turn_into_another_error()


@pytest.mark.parametrize("error", [RuntimeError("a bug"), SystemExit(2), KeyboardInterrupt()])
def test_other_errors_pass(error: BaseException) -> None:
    with pytest.raises(type(error)), interruptible():
        raise error


def test_a_verb_that_ended_normally_has_ended_normally() -> None:
    with pytest.raises(SystemExit) as ended, interruptible():
        end_normally()
    assert ended.value.code == 0


def end_normally() -> None:
    try:
        interrupt()
    except Interrupted:
        raise SystemExit(0) from None


class Closing:
    """An object whose finalizer is interrupted: Python cannot raise there."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)


def test_it_is_repeated_where_it_was_lost(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Interrupted), interruptible():
        lose_it()
    assert capsys.readouterr().err == ""


def lose_it() -> None:
    closing = Closing()
    del closing
    time.sleep(30)  # is cut short
