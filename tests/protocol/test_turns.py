"""Both turn tables: every (role, state, message) is allowed, or refused with the right error."""

import itertools
from enum import Enum

import numpy as np
import pytest

from vesper.errors import LocalProtocolError, RemoteProtocolError
from vesper.protocol.codec import KINDS
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.messages import (
    DataHello,
    EmbeddingClientHello,
    EmbeddingQuery,
    Embeddings,
    EmbeddingServerHello,
    EvaluationReply,
    Farewell,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    QueryAnswer,
    Roster,
    SessionFinished,
    Verdict,
)
from vesper.protocol.turns import TRAINING_TABLE, Role, TurnChecker, TurnTable

VALUES = np.ones((1, 2, 3), dtype=np.float32)
EXAMPLES: list[Message] = [
    DataHello(version=1, contract="c", num_nodes=5, num_features=2),
    LabelHello(version=1, contract="c", num_outputs=2),
    Roster(train=("a",), val=(), test=(), label_posteriors=np.ones((1, 2), dtype=np.float32)),
    Embeddings(step=1, purpose=Purpose.TRAIN, roots_digest=b"d", values=VALUES),
    Gradients(step=1, values=VALUES),
    EvaluationReply(step=1, verdict=Verdict.BEST),
    SessionFinished(),
    Farewell(),
    EmbeddingServerHello(1, "c", "s", "g"),
    EmbeddingClientHello(1, "c", "s", 0),
    EmbeddingQuery(1, ("a",)),
    QueryAnswer(1, 1.0, 1e-5, 0.0, 1.0, b"d", (), VALUES),
]
TABLES = pytest.mark.parametrize(
    "table", [TRAINING_TABLE, QUERY_TABLE], ids=["training", "inference"]
)


def test_there_is_an_example_of_every_message() -> None:
    assert tuple(map(type, EXAMPLES)) == KINDS


def in_state(role: Role, state: Enum, table: TurnTable) -> TurnChecker:
    checker = TurnChecker(role, table)
    checker.state = state
    return checker


@TABLES
def test_every_triple(table: TurnTable) -> None:
    for role, state, message in itertools.product(Role, table.turns, EXAMPLES):
        allowed = type(message) in table.turns[state]
        is_sender = table.sender.get(state) is role

        sender = in_state(role, state, table)
        if allowed and is_sender:
            sender.record_sent(message)
            assert sender.state is table.turns[state][type(message)]
        else:
            with pytest.raises(LocalProtocolError):
                sender.record_sent(message)
            assert sender.state is state

        receiver = in_state(role, state, table)
        if allowed and not is_sender:
            receiver.record_received(message)
            assert receiver.state is table.turns[state][type(message)]
        else:
            with pytest.raises(RemoteProtocolError):
                receiver.record_received(message)
            assert receiver.state is state


@TABLES
def test_every_state_can_be_reached_and_left(table: TurnTable) -> None:
    states = set(type(table.first))
    assert set(table.turns) == states
    reached = {table.first}
    for _ in states:
        reached |= {after for state in reached for after in table.turns[state].values()}
    assert reached == states
    assert [state.name for state in table.turns if not table.turns[state]] == ["CLOSED"]


def test_the_two_tables_share_no_message_but_farewell() -> None:
    kinds = [
        {kind for turns in table.turns.values() for kind in turns}
        for table in (TRAINING_TABLE, QUERY_TABLE)
    ]
    assert kinds[0] & kinds[1] == {Farewell}
    assert kinds[0] | kinds[1] == set(KINDS)
