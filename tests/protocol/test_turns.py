"""Every (role, state, message) triple is either in the table or refused, by blame."""

import itertools

import numpy as np
import pytest

from vesper.errors import LocalProtocolError, RemoteProtocolError
from vesper.protocol.messages import (
    DataHello,
    Embeddings,
    Farewell,
    Finished,
    Gradients,
    LabelHello,
    Message,
    Purpose,
    Received,
    Roster,
    Verdict,
)
from vesper.protocol.turns import SPEAKER, TURNS, Conversation, Role, State

EXAMPLES: list[Message] = [
    DataHello(version=1, contract="c", num_nodes=5, num_features=2),
    LabelHello(version=1, contract="c", num_outputs=2),
    Roster(train=("a",), val=(), test=(), voices=np.ones((1, 2), dtype=np.float32)),
    Embeddings(step=1, purpose=Purpose.TRAIN, roots_digest=b"d", values=np.ones((1, 2, 3), "f4")),
    Gradients(step=1, values=np.ones((1, 2, 3), "f4")),
    Received(step=1, verdict=Verdict.BEST),
    Finished(),
    Farewell(),
]


def in_state(role: Role, state: State) -> Conversation:
    conversation = Conversation(role)
    conversation.state = state
    return conversation


@pytest.mark.parametrize(
    ("role", "state", "message"), list(itertools.product(Role, State, EXAMPLES))
)
def test_every_triple(role: Role, state: State, message: Message) -> None:
    allowed = type(message) in TURNS[state]
    speaking = SPEAKER.get(state) is role

    sender = in_state(role, state)
    if allowed and speaking:
        sender.sending(message)
        assert sender.state is TURNS[state][type(message)]
    else:
        with pytest.raises(LocalProtocolError):
            sender.sending(message)
        assert sender.state is state

    receiver = in_state(role, state)
    if allowed and not speaking:
        receiver.received(message)
        assert receiver.state is TURNS[state][type(message)]
    else:
        with pytest.raises(RemoteProtocolError):
            receiver.received(message)
        assert receiver.state is state


def test_every_state_can_be_reached_and_left() -> None:
    reached = {State.HELLO_OF_DATA}
    for _ in State:
        reached |= {after for state in reached for after in TURNS[state].values()}
    assert reached == set(State)
    assert [state for state in State if not TURNS[state]] == [State.OVER]
