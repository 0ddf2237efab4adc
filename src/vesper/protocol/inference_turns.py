"""What is said after training, as a table: the label party asks, the data party answers.

hello, hello, then  Query -> Answer | Refusal  as often as it likes, then Farewell
"""

from enum import Enum, auto

from vesper.protocol.messages import (
    Answer,
    AnswererHello,
    AskerHello,
    Farewell,
    Message,
    Query,
    Refusal,
)
from vesper.protocol.turns import Role, Table


class AskingState(Enum):
    """What both ends are waiting for."""

    HELLO_OF_ANSWERER = auto()
    HELLO_OF_ASKER = auto()
    QUERY = auto()
    REPLY = auto()
    OVER = auto()


SPEAKER: dict[AskingState, Role] = {
    AskingState.HELLO_OF_ANSWERER: Role.DATA,
    AskingState.HELLO_OF_ASKER: Role.LABEL,
    AskingState.QUERY: Role.LABEL,
    AskingState.REPLY: Role.DATA,
}

TURNS: dict[AskingState, dict[type[Message], AskingState]] = {
    AskingState.HELLO_OF_ANSWERER: {AnswererHello: AskingState.HELLO_OF_ASKER},
    AskingState.HELLO_OF_ASKER: {AskerHello: AskingState.QUERY},
    AskingState.QUERY: {Query: AskingState.REPLY, Farewell: AskingState.OVER},
    AskingState.REPLY: {Answer: AskingState.QUERY, Refusal: AskingState.QUERY},
    AskingState.OVER: {},
}

ASKING = Table(AskingState.HELLO_OF_ANSWERER, SPEAKER, TURNS)
