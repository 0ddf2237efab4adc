"""Close reason: why an end closes the connection, a word of a closed list, sent last.

| word | what the other end does |
| --- | --- |
| DONE | nothing: everything was sent |
| USER, FAULT | wait or stop, as for a lost connection: the peer may continue with --resume |
| BUDGET, SETTINGS, PROTOCOL | stop at once: a person must act first |
| BUDGET_UNCHARGED, .. | as without UNCHARGED; nothing was charged, so both ends may start over |
| EXCLUDED | stop at once: the other parties continue without this end |

The list is closed so that a reason cannot carry anything about edges or labels; details stay on
the machine where the error occurred.
"""

from enum import IntEnum

from vesper.errors import (
    BudgetError,
    InputError,
    LocalProtocolError,
    PeerError,
    PeerLostError,
    PeerStoppedError,
    RemoteProtocolError,
)


class CloseReason(IntEnum):
    """The words, as the byte that is sent."""

    DONE = 0
    USER = 1
    FAULT = 2
    BUDGET = 3
    SETTINGS = 4
    PROTOCOL = 5
    EXCLUDED = 6
    BUDGET_UNCHARGED = 7
    SETTINGS_UNCHARGED = 8
    PROTOCOL_UNCHARGED = 9


_MAY_COME_BACK = {
    CloseReason.DONE: "has closed the connection",
    CloseReason.USER: "was stopped by its user",
    CloseReason.FAULT: "has failed and stopped",
}
_WILL_NOT = {
    CloseReason.BUDGET: "its privacy budget does not allow it",
    CloseReason.SETTINGS: "settings, files, versions or sessions do not match",
    CloseReason.PROTOCOL: "it rejects what this side has sent",
    CloseReason.EXCLUDED: "it continues without this side, which was too late",
}

_UNCHARGED = {
    CloseReason.BUDGET: CloseReason.BUDGET_UNCHARGED,
    CloseReason.SETTINGS: CloseReason.SETTINGS_UNCHARGED,
    CloseReason.PROTOCOL: CloseReason.PROTOCOL_UNCHARGED,
}
_WITH_POSSIBLE_CHARGE = {uncharged: reason for reason, uncharged in _UNCHARGED.items()}


def close_reason_for(error: BaseException) -> CloseReason:
    """Close reason of an end that fails with `error`; other than an Exception it is Ctrl-C."""
    match error:
        case BudgetError():
            return CloseReason.BUDGET
        case RemoteProtocolError():
            return CloseReason.PROTOCOL
        case PeerLostError():
            return CloseReason.FAULT
        case InputError() | LocalProtocolError() | PeerError():
            return CloseReason.SETTINGS
        case Exception():
            return CloseReason.FAULT
    return CloseReason.USER


def without_charge(reason: CloseReason) -> CloseReason:
    """Return the same reason, which also says that nothing was charged for the session."""
    return _UNCHARGED.get(reason, reason)


def error_for_close_reason(reason: CloseReason, peer: str) -> PeerError:
    """Error that this end raises when `peer` has closed the connection for this reason."""
    why = _WILL_NOT.get(_WITH_POSSIBLE_CHARGE.get(reason, reason))
    if why is not None:
        stopped = PeerStoppedError(
            f"{peer} has ended the session: {why}; see the error on its side"
        )
        stopped.nothing_was_charged = reason in _WITH_POSSIBLE_CHARGE
        return stopped
    lost = PeerLostError(f"{peer} {_MAY_COME_BACK[reason]}")
    lost.is_clean_close = reason is CloseReason.DONE
    return lost
