"""Every error a user can meet, each with the exit code its command ends with.

A message says what was expected, what was found, and what to do. The command line prints it
without a traceback; anything that is not a `VesperError` is a bug of ours and keeps its traceback.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | the run failed |
| 2 | wrong input: one clear message on standard error |
| 3 | refused by the privacy budget |
| 4 | the peer failed |
| 130 | stopped by Ctrl-C |
"""

from collections.abc import Iterable


class VesperError(Exception):
    """The run failed for a reason that can be named."""

    exit_code = 1
    party_name: str | None = None
    """Which of several data parties it is about, where it is about one."""


class InputError(VesperError):
    """The user gave something that cannot be used: a file, a column, a setting."""

    exit_code = 2


class BudgetError(VesperError):
    """The ledger refused: the release would cost more than is left."""

    exit_code = 3


class PeerError(VesperError):
    """The other party is gone, silent, or not who it should be."""

    exit_code = 4


class PeerLostError(PeerError):
    """The connection is gone: cut, or the peer was silent for too long. It may come back."""

    is_clean_close = False
    """Whether the peer ended it in good order."""


class PeerStoppedError(PeerError):
    """The peer has ended the session and said why; waiting does not mend it."""


class LocalProtocolError(VesperError):
    """This side tried to send something out of turn: a bug here, nothing was sent."""


class RemoteProtocolError(PeerError):
    """The peer sent something that the protocol does not allow now."""


def first_three(offenders: Iterable[object]) -> str:
    """Name at most three offenders, for the end of a message.

    >>> first_three([7, 8, 9, 10])
    'first 3: 7, 8, 9'
    >>> first_three(["u1"])
    'first 1: u1'

    A name with a newline or the like in it is quoted, so that a message stays one line.
    """
    named = [_one_line(str(offender)) for _, offender in zip(range(3), offenders, strict=False)]
    return f"first {len(named)}: {', '.join(named)}"


def _one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)
