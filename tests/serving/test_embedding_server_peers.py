"""The data party answers one peer after the other; a bad one is sent away and the next is heard."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vesper.deployment.saved_run import read_asking
from vesper.errors import InputError, PeerError
from vesper.protocol.codec import encode
from vesper.protocol.inference_turns import ASKING
from vesper.protocol.messages import (
    Answer,
    AnswererHello,
    AskerHello,
    DataHello,
    Farewell,
    LabelHello,
    Message,
    Query,
)
from vesper.protocol.turns import Role
from vesper.serving import embedding_server
from vesper.serving.embedding_server import Answerer, answer_queries, converse, open_answerer
from vesper.session.peer import PROTOCOL_VERSION, Link
from vesper.transport.channel import Channel
from vesper.transport.memory import memory_pair

if TYPE_CHECKING:
    from tests.fixtures.finished_run import Finished


def hello_of(finished: "Finished", **other: Any) -> AskerHello:
    run = read_asking(finished.label)
    facts = {
        "version": PROTOCOL_VERSION,
        "contract": run.contract,
        "session": run.session,
        "stage": run.stage,
    }
    return AskerHello(**{**facts, **other})


def spoken_to(answerer: Answerer, *frames: bytes) -> list[str]:
    """Let a peer say these frames and close; give the lines that the answerer says."""
    ours, theirs = memory_pair(patience=5)
    for frame in frames:
        ours.send(frame)
    ours.close()
    said: list[str] = []
    converse(answerer, Link(Role.DATA, theirs, ASKING), said=said.append)
    return said


def test_a_conversation_ends_with_a_farewell(finished: "Finished") -> None:
    words: list[Message] = [hello_of(finished), Query(1, ("u01", "x")), Query(2, ()), Farewell()]
    with open_answerer(finished.data) as answerer:
        said = spoken_to(answerer, *map(encode, words))
    assert said == ["answered about 1 nodes, 1 unknown (epsilon 8 of 8)"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"version": 1}, "version"),
        ({"contract": "{}"}, "differ"),
        ({"contract": "[" * 70_000}, "contract"),
        ({"session": "other"}, "another run"),
        ({"stage": -1}, "stage"),
        ({"stage": 3}, "stage"),
    ],
    ids=lambda wrong: str(wrong)[:30],
)
def test_strangers_are_sent_away(finished: "Finished", wrong: dict[str, Any], said: str) -> None:
    with open_answerer(finished.data) as answerer, pytest.raises(PeerError, match=said):
        spoken_to(answerer, encode(hello_of(finished, **wrong)), encode(Query(1, ("u01",))))


def test_words_out_of_turn_are_the_peers_fault(finished: "Finished") -> None:
    wrong: list[list[Message]] = [
        [Query(1, ("u01",))],
        [Farewell()],
        [LabelHello(PROTOCOL_VERSION, "", 2)],
        [hello_of(finished), hello_of(finished)],
        [hello_of(finished), DataHello(PROTOCOL_VERSION, "", 1, 1)],
    ]
    before = finished.ledger.read_bytes()
    with open_answerer(finished.data) as answerer:
        for words in wrong:
            with pytest.raises(PeerError, match="expected"):
                spoken_to(answerer, *map(encode, words))
    assert finished.ledger.read_bytes() == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_broken_bytes_never_move_the_ledger(finished: "Finished", data: st.DataObject) -> None:
    frames = [encode(hello_of(finished)), encode(Query(1, ("u01",))), encode(Farewell())]
    broken = data.draw(st.integers(0, 2))
    frame = bytearray(frames[broken])
    at = data.draw(st.integers(0, len(frame) - 1))
    cut = data.draw(st.booleans())
    frame[at] ^= data.draw(st.integers(1, 255))
    frames[broken] = bytes(frame[:at] if cut else frame)
    before = finished.ledger.read_bytes()
    with open_answerer(finished.data) as answerer:
        try:
            spoken_to(answerer, *frames)
        except PeerError:
            pass
    assert finished.ledger.read_bytes() == before


class Enough(Exception):
    """Ends a loop that has no end."""


def test_after_a_bad_peer_the_next_is_heard(
    finished: "Finished", monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [encode(hello_of(finished)), encode(Query(1, ("u01",))), encode(Farewell())]
    peers = [[b"noise"], [], good]
    ends: list[Any] = []

    @contextmanager
    def met(*_: Any, **__: Any) -> Iterator[Callable[[float | None], Channel]]:
        def connect(limit: float | None) -> Channel:
            if not peers:
                raise Enough
            ours, theirs = memory_pair(patience=1)
            for frame in peers.pop(0):
                ours.send(frame)
            ours.close()
            ends.append(ours)
            return theirs

        yield connect

    monkeypatch.setattr(embedding_server, "meeting_place", met)
    said: list[str] = []
    with pytest.raises(Enough):
        answer_queries(finished.data, said=said.append)
    text = "\n".join(said)
    assert "bank was sent away" in text
    assert "answered about 1 nodes" in text
    link = Link(Role.LABEL, ends[-1], ASKING)
    assert isinstance(link.receive(), AnswererHello)
    link._conversation.sending(hello_of(finished))
    link._conversation.sending(Query(1, ("u01",)))
    assert isinstance(link.receive(), Answer)


def test_one_process_at_a_time_and_a_state_must_be_there(finished: "Finished") -> None:
    from vesper.deployment.state_folder import held

    with held(finished.data.party.state):
        failed: list[BaseException] = []

        def second() -> None:
            try:
                answer_queries(finished.data)
            except InputError as error:
                failed.append(error)

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert "another process" in str(failed[0])
    with pytest.raises(InputError, match="cannot be written"), held(finished.root / "none"):
        pass
