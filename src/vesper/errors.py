"""Errors that users can meet, each with the exit code that its command ends with.

A message says what was expected, what was found, and what to do. The command line prints it
without a traceback. Any other exception is a bug in VESPER and keeps its traceback.

| exit code | meaning |
| --- | --- |
| 0 | success |
| 1 | the run failed |
| 2 | invalid input; one message on standard error explains the fix |
| 3 | refused by the privacy budget |
| 4 | the peer failed |
| 130 | stopped by Ctrl-C |
"""

from collections.abc import Iterable


class VesperError(Exception):
    """The run failed for a known reason."""

    exit_code = 1
    party_name: str | None = None
    """The data party that the error is about, where there are several."""


class InputError(VesperError):
    """Unusable input from the user: a file, a column or a setting."""

    exit_code = 2


class BudgetError(VesperError):
    """The ledger refused a release that would cost more than is left of the budget."""

    exit_code = 3


class PeerError(VesperError):
    """The other party is unreachable, silent, or not the expected one."""

    exit_code = 4


class PeerLostError(PeerError):
    """The connection was lost, or the peer was silent for too long; it may come back."""

    is_clean_close = False
    """Whether the peer closed the connection properly."""


class PeerStoppedError(PeerError):
    """The peer ended the session and gave a reason; waiting will not help."""

    nothing_was_charged = False
    """Whether the peer has said that nothing was charged for the session."""


class LocalProtocolError(VesperError):
    """This side tried to send a message out of turn: a bug on this side; nothing was sent."""


class RemoteProtocolError(PeerError):
    """The peer sent a message that the protocol does not allow at this point."""


def first_three(offenders: Iterable[object]) -> str:
    """List at most three offenders, for the end of a message.

    >>> first_three([7, 8, 9, 10])
    'first 3: 7, 8, 9'
    >>> first_three(["u1"])
    'first 1: u1'

    Names with newlines or other unprintable characters are quoted, so that a message stays on one
    line.
    """
    named = [_one_line(str(offender)) for _, offender in zip(range(3), offenders, strict=False)]
    return f"first {len(named)}: {', '.join(named)}"


def _one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)
