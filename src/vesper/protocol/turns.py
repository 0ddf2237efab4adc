"""Turn table: which message may come next, and who sends it.

`TRAINING_TURNS[state]` lists the messages that may come next and the state that each leads to;
`TRAINING_SENDERS[state]` is the sender. Any pair that is not listed is refused. The table for
queries after training is in `inference_turns`.
"""

from collections.abc import Collection, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from vesper.errors import LocalProtocolError, RemoteProtocolError
from vesper.protocol.messages import (
    DataHello,
    Embeddings,
    EvaluationReply,
    Farewell,
    Gradients,
    LabelHello,
    Message,
    Roster,
    SessionFinished,
)


class Role(Enum):
    """The two ends of a channel."""

    DATA = "data party"
    LABEL = "label party"


class TrainingState(Enum):
    """The message that is due next; equal at both ends."""

    DATA_HELLO = auto()
    LABEL_HELLO = auto()
    ROSTER = auto()
    READY = auto()
    LABEL_REPLY = auto()
    FAREWELL = auto()
    CLOSED = auto()


TRAINING_SENDERS: dict[TrainingState, Role] = {
    TrainingState.DATA_HELLO: Role.DATA,
    TrainingState.LABEL_HELLO: Role.LABEL,
    TrainingState.ROSTER: Role.LABEL,
    TrainingState.READY: Role.DATA,
    TrainingState.LABEL_REPLY: Role.LABEL,
    TrainingState.FAREWELL: Role.LABEL,
}

TRAINING_TURNS: dict[TrainingState, dict[type[Message], TrainingState]] = {
    TrainingState.DATA_HELLO: {DataHello: TrainingState.LABEL_HELLO},
    TrainingState.LABEL_HELLO: {LabelHello: TrainingState.ROSTER},
    TrainingState.ROSTER: {Roster: TrainingState.READY},
    TrainingState.READY: {
        Embeddings: TrainingState.LABEL_REPLY,
        SessionFinished: TrainingState.FAREWELL,
    },
    TrainingState.LABEL_REPLY: {
        Gradients: TrainingState.READY,
        EvaluationReply: TrainingState.READY,
    },
    TrainingState.FAREWELL: {Farewell: TrainingState.CLOSED},
    TrainingState.CLOSED: {},
}


class TurnTable(NamedTuple):
    """A protocol: its first state, who sends in each state, and which messages are allowed."""

    first: Enum
    sender: Mapping[Any, Role]
    turns: Mapping[Any, Mapping[type[Message], Enum]]


TRAINING_TABLE = TurnTable(TrainingState.DATA_HELLO, TRAINING_SENDERS, TRAINING_TURNS)


class TurnChecker:
    """State of one end of the exchange; both ends go through the same states in the same order."""

    def __init__(self, role: Role, table: TurnTable = TRAINING_TABLE) -> None:
        self.role, self._table = role, table
        self.state = table.first

    @property
    def due(self) -> Collection[type[Message]]:
        """Messages that may come next, from either end."""
        return self._table.turns[self.state]

    def record_sent(self, message: Message) -> None:
        """Advance the state before `message` is sent.

        Raises:
            LocalProtocolError: it is not this end's turn to send such a message.
        """
        turns = self._table.turns[self.state]
        if self._table.sender.get(self.state) is not self.role or type(message) not in turns:
            raise LocalProtocolError(
                f"{self.role.value}: may not send {type(message).__name__} in {self.state.name}"
            )
        self.state = turns[type(message)]

    def record_received(self, message: Message) -> None:
        """Advance the state after `message` was received.

        Raises:
            RemoteProtocolError: it was not the peer's turn to send such a message.
        """
        turns = self._table.turns[self.state]
        if self._table.sender.get(self.state) is self.role or type(message) not in turns:
            allowed = ", ".join(kind.__name__ for kind in turns) or "nothing"
            raise RemoteProtocolError(
                f"{self.role.value}: expected {allowed} in {self.state.name}, "
                f"the peer sent {type(message).__name__}"
            )
        self.state = turns[type(message)]
