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


class Parting(IntEnum):
    """The words, as the byte that crosses."""

    DONE = 0
    USER = 1
    FAULT = 2
    BUDGET = 3
    SETTINGS = 4
    PROTOCOL = 5
    WITHOUT = 6


_MAY_COME_BACK = {
    Parting.DONE: "has closed the connection",
    Parting.USER: "was stopped by its user",
    Parting.FAULT: "has failed and stopped",
}
_WILL_NOT = {
    Parting.BUDGET: "its privacy budget does not allow it",
    Parting.SETTINGS: "settings, files, versions or sessions do not fit together",
    Parting.PROTOCOL: "it refuses what this side has sent",
    Parting.WITHOUT: "it goes on without this side, which was too late",
}


def parting_of(error: BaseException) -> Parting:
    """Why an end leaves that was ended by `error`; what is no Exception is a user's Ctrl-C."""
    match error:
        case BudgetError():
            return Parting.BUDGET
        case RemoteProtocolError():
            return Parting.PROTOCOL
        case PeerLostError():
            return Parting.FAULT
        case InputError() | LocalProtocolError() | PeerError():
            return Parting.SETTINGS
        case Exception():
            return Parting.FAULT
    return Parting.USER


def error_of(parting: Parting, peer: str) -> PeerError:
    """What it means to this end that `peer` has left with this word."""
    if parting in _WILL_NOT:
        return PeerStoppedError(
            f"{peer} has ended the session: {_WILL_NOT[parting]}; it says more on its side"
        )
    lost = PeerLostError(f"{peer} {_MAY_COME_BACK[parting]}")
    lost.is_farewell = parting is Parting.DONE
    return lost
