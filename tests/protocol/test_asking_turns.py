"""After training: every (role, state, message) triple is either in the table or refused."""

import itertools

import numpy as np
import pytest

from vesper.errors import LocalProtocolError, RemoteProtocolError
from vesper.protocol.asking_turns import ASKING, SPEAKER, TURNS, AskingState
from vesper.protocol.messages import (
    Answer,
    AnswererHello,
    AskerHello,
    DataHello,
    Farewell,
    Finished,
    Message,
    Query,
    Refusal,
)
from vesper.protocol.turns import TRAINING, Conversation, Role

EXAMPLES: list[Message] = [
    AnswererHello(1, "c", "s", "g"),
    AskerHello(1, "c", "s", 0),
    Query(1, ("a",)),
    Answer(1, 1.0, 1e-5, 0.0, 1.0, b"d", (), np.ones((1, 2, 3), "f4")),
    Refusal(1, 1.0, 1e-5, 0.0, 1.0, "no"),
    Farewell(),
    DataHello(version=1, contract="c", num_nodes=5, num_features=2),
    Finished(),
]


@pytest.mark.parametrize(
    ("role", "state", "message"), list(itertools.product(Role, AskingState, EXAMPLES))
)
def test_every_triple(role: Role, state: AskingState, message: Message) -> None:
    allowed, speaking = type(message) in TURNS[state], SPEAKER.get(state) is role
    sender, receiver = Conversation(role, ASKING), Conversation(role, ASKING)
    sender.state = receiver.state = state
    if allowed and speaking:
        sender.sending(message)
        assert sender.state is TURNS[state][type(message)]
    else:
        with pytest.raises(LocalProtocolError):
            sender.sending(message)
        assert sender.state is state
    if allowed and not speaking:
        receiver.received(message)
        assert receiver.state is TURNS[state][type(message)]
    else:
        with pytest.raises(RemoteProtocolError):
            receiver.received(message)
        assert receiver.state is state


def test_every_state_can_be_reached_and_left() -> None:
    reached = {AskingState.HELLO_OF_ANSWERER}
    for _ in AskingState:
        reached |= {after for state in reached for after in TURNS[state].values()}
    assert reached == set(AskingState)
    assert [state for state in AskingState if not TURNS[state]] == [AskingState.OVER]


def test_the_two_conversations_share_no_word_but_farewell() -> None:
    words = [
        {kind for turns in table.turns.values() for kind in turns} for table in (TRAINING, ASKING)
    ]
    assert words[0] & words[1] == {Farewell}
