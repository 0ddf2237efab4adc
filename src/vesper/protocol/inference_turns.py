"""Turn table after training: the label party sends queries, the data party answers.

hello, hello, then  Query -> Answer | Refusal  any number of times, then Farewell
"""

from enum import Enum, auto

from vesper.protocol.messages import (
    EmbeddingClientHello,
    EmbeddingQuery,
    EmbeddingServerHello,
    Farewell,
    Message,
    QueryAnswer,
)
from vesper.protocol.turns import Role, TurnTable


class QueryState(Enum):
    """The message that is due next; equal at both ends."""

    SERVER_HELLO = auto()
    CLIENT_HELLO = auto()
    QUERY = auto()
    REPLY = auto()
    CLOSED = auto()


QUERY_SENDERS: dict[QueryState, Role] = {
    QueryState.SERVER_HELLO: Role.DATA,
    QueryState.CLIENT_HELLO: Role.LABEL,
    QueryState.QUERY: Role.LABEL,
    QueryState.REPLY: Role.DATA,
}

QUERY_TURNS: dict[QueryState, dict[type[Message], QueryState]] = {
    QueryState.SERVER_HELLO: {EmbeddingServerHello: QueryState.CLIENT_HELLO},
    QueryState.CLIENT_HELLO: {EmbeddingClientHello: QueryState.QUERY},
    QueryState.QUERY: {EmbeddingQuery: QueryState.REPLY, Farewell: QueryState.CLOSED},
    QueryState.REPLY: {QueryAnswer: QueryState.QUERY},
    QueryState.CLOSED: {},
}

QUERY_TABLE = TurnTable(QueryState.SERVER_HELLO, QUERY_SENDERS, QUERY_TURNS)
