"""Why an end leaves: one word of a closed list, the last that it says before the connection ends.

| word | what the other end does |
| --- | --- |
| DONE | all is said |
| USER, FAULT | the peer may go on with --resume: wait or stop, as for one that was lost |
| BUDGET, SETTINGS, PROTOCOL | a person must act first: end at once |
| WITHOUT | the other parties go on alone: end at once |

The list is closed, so that a reason cannot carry anything about edges or labels; details stay on
the machine where it happened.
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
    """The words, as the byte that crosses."""

    DONE = 0
    USER = 1
    FAULT = 2
    BUDGET = 3
    SETTINGS = 4
    PROTOCOL = 5
    EXCLUDED = 6


_MAY_COME_BACK = {
    CloseReason.DONE: "has closed the connection",
    CloseReason.USER: "was stopped by its user",
    CloseReason.FAULT: "has failed and stopped",
}
_WILL_NOT = {
    CloseReason.BUDGET: "its privacy budget does not allow it",
    CloseReason.SETTINGS: "settings, files, versions or sessions do not fit together",
    CloseReason.PROTOCOL: "it refuses what this side has sent",
    CloseReason.EXCLUDED: "it goes on without this side, which was too late",
}


def close_reason_for(error: BaseException) -> CloseReason:
    """Why an end leaves that was ended by `error`; what is no Exception is a user's Ctrl-C."""
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


def error_for_close_reason(reason: CloseReason, peer: str) -> PeerError:
    """What it means to this end that `peer` has left with this word."""
    if reason in _WILL_NOT:
        return PeerStoppedError(
            f"{peer} has ended the session: {_WILL_NOT[reason]}; it says more on its side"
        )
    lost = PeerLostError(f"{peer} {_MAY_COME_BACK[reason]}")
    lost.is_clean_close = reason is CloseReason.DONE
    return lost
