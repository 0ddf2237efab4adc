"""Both conversations: every (role, state, message) triple is in the table or refused, by blame."""

import itertools
from enum import Enum

import numpy as np
import pytest

from vesper.errors import LocalProtocolError, RemoteProtocolError
from vesper.protocol.codec import KINDS
from vesper.protocol.inference_turns import ASKING
from vesper.protocol.messages import (
    Answer,
    AnswererHello,
    AskerHello,
    DataHello,
    Embeddings,
    Farewell,
    Finished,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    Query,
    Received,
    Refusal,
    Roster,
    Verdict,
)
from vesper.protocol.turns import TRAINING, Conversation, Role, Table

VALUES = np.ones((1, 2, 3), dtype=np.float32)
EXAMPLES: list[Message] = [
    DataHello(version=1, contract="c", num_nodes=5, num_features=2),
    LabelHello(version=1, contract="c", num_outputs=2),
    Roster(train=("a",), val=(), test=(), voices=np.ones((1, 2), dtype=np.float32)),
    Embeddings(step=1, purpose=Purpose.TRAIN, roots_digest=b"d", values=VALUES),
    Gradients(step=1, values=VALUES),
    Received(step=1, verdict=Verdict.BEST),
    Finished(),
    Farewell(),
    AnswererHello(1, "c", "s", "g"),
    AskerHello(1, "c", "s", 0),
    Query(1, ("a",)),
    Answer(1, 1.0, 1e-5, 0.0, 1.0, b"d", (), VALUES),
    Refusal(1, 1.0, 1e-5, 0.0, 1.0, "no"),
]
TABLES = pytest.mark.parametrize("table", [TRAINING, ASKING], ids=["training", "asking"])


def test_there_is_an_example_of_everything_that_may_cross() -> None:
    assert tuple(map(type, EXAMPLES)) == KINDS


def in_state(role: Role, state: Enum, table: Table) -> Conversation:
    conversation = Conversation(role, table)
    conversation.state = state
    return conversation


@TABLES
def test_every_triple(table: Table) -> None:
    for role, state, message in itertools.product(Role, table.turns, EXAMPLES):
        allowed = type(message) in table.turns[state]
        speaking = table.speaker.get(state) is role

        sender = in_state(role, state, table)
        if allowed and speaking:
            sender.sending(message)
            assert sender.state is table.turns[state][type(message)]
        else:
            with pytest.raises(LocalProtocolError):
                sender.sending(message)
            assert sender.state is state

        receiver = in_state(role, state, table)
        if allowed and not speaking:
            receiver.received(message)
            assert receiver.state is table.turns[state][type(message)]
        else:
            with pytest.raises(RemoteProtocolError):
                receiver.received(message)
            assert receiver.state is state


@TABLES
def test_every_state_can_be_reached_and_left(table: Table) -> None:
    states = set(type(table.first))
    assert set(table.turns) == states
    reached = {table.first}
    for _ in states:
        reached |= {after for state in reached for after in table.turns[state].values()}
    assert reached == states
    assert [state.name for state in table.turns if not table.turns[state]] == ["OVER"]


def test_the_two_conversations_share_no_word_but_farewell() -> None:
    words = [
        {kind for turns in table.turns.values() for kind in turns} for table in (TRAINING, ASKING)
    ]
    assert words[0] & words[1] == {Farewell}
    assert words[0] | words[1] == set(KINDS)
