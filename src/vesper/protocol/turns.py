"""Whose turn it is, as a table. Everything about order is in this file.

`TURNS[state]` lists the messages that may come next and the state they lead to; `SPEAKER[state]`
says who sends. Every pair that is not listed is refused. What is said after training has a table of
its own, `asking_turns`.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from vesper.errors import LocalProtocolError, RemoteProtocolError
from vesper.protocol.messages import (
    DataHello,
    Embeddings,
    Farewell,
    Finished,
    Gradients,
    LabelHello,
    Message,
    Received,
    Roster,
)


class Role(Enum):
    """The two ends."""

    DATA = "data party"
    LABEL = "label party"


class State(Enum):
    """What both ends are waiting for."""

    HELLO_OF_DATA = auto()
    HELLO_OF_LABEL = auto()
    ROSTER = auto()
    READY = auto()
    ANSWER = auto()
    FAREWELL = auto()
    OVER = auto()


SPEAKER: dict[State, Role] = {
    State.HELLO_OF_DATA: Role.DATA,
    State.HELLO_OF_LABEL: Role.LABEL,
    State.ROSTER: Role.LABEL,
    State.READY: Role.DATA,
    State.ANSWER: Role.LABEL,
    State.FAREWELL: Role.LABEL,
}

TURNS: dict[State, dict[type[Message], State]] = {
    State.HELLO_OF_DATA: {DataHello: State.HELLO_OF_LABEL},
    State.HELLO_OF_LABEL: {LabelHello: State.ROSTER},
    State.ROSTER: {Roster: State.READY},
    State.READY: {Embeddings: State.ANSWER, Finished: State.FAREWELL},
    State.ANSWER: {Gradients: State.READY, Received: State.READY},
    State.FAREWELL: {Farewell: State.OVER},
    State.OVER: {},
}


class Table(NamedTuple):
    """A closed conversation: where it begins, who speaks when, and what may be said."""

    first: Enum
    speaker: Mapping[Any, Role]
    turns: Mapping[Any, Mapping[type[Message], Enum]]


TRAINING = Table(State.HELLO_OF_DATA, SPEAKER, TURNS)


class Conversation:
    """One end's view of the exchange; both ends see the same states in the same order."""

    def __init__(self, role: Role, table: Table = TRAINING) -> None:
        self.role, self._table = role, table
        self.state = table.first

    def sending(self, message: Message) -> None:
        """Note that this end sends `message`; refuse, before it is sent, what is out of turn."""
        turns = self._table.turns[self.state]
        if self._table.speaker.get(self.state) is not self.role or type(message) not in turns:
            raise LocalProtocolError(
                f"{self.role.value}: may not send {type(message).__name__} in {self.state.name}"
            )
        self.state = turns[type(message)]

    def received(self, message: Message) -> None:
        """Note that the peer sent `message`; blame it for what is out of turn."""
        turns = self._table.turns[self.state]
        if self._table.speaker.get(self.state) is self.role or type(message) not in turns:
            allowed = ", ".join(kind.__name__ for kind in turns) or "nothing"
            raise RemoteProtocolError(
                f"{self.role.value}: expected {allowed} in {self.state.name}, "
                f"the peer sent {type(message).__name__}"
            )
        self.state = turns[type(message)]
