"""The data party serves one peer after another; after a bad peer it serves the next."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vesper.deployment.saved_run import read_saved_label_run
from vesper.errors import InputError, PeerError, RemoteProtocolError
from vesper.protocol import fields
from vesper.protocol.codec import encode
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.messages import (
    DataHello,
    EmbeddingClientHello,
    EmbeddingQuery,
    EmbeddingServerHello,
    Farewell,
    LabelHello,
    Message,
    QueryAnswer,
)
from vesper.protocol.turns import Role
from vesper.serving import embedding_server
from vesper.serving.embedding_server import (
    MAX_IDS,
    EmbeddingServer,
    open_embedding_server,
    serve_embeddings,
    serve_peer,
)
from vesper.session.peer import PROTOCOL_VERSION, Link
from vesper.transport import memory
from vesper.transport.channel import MAX_FRAME_BYTES, Channel
from vesper.transport.memory import MemoryChannel, memory_pair

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun


def hello_of(finished: "FinishedRun", **other: Any) -> EmbeddingClientHello:
    run = read_saved_label_run(finished.label)
    facts = {
        "version": PROTOCOL_VERSION,
        "contract": run.contract,
        "session": run.session,
        "stage": run.stage,
    }
    return EmbeddingClientHello(**{**facts, **other})


def connected_to_server(server: EmbeddingServer, *frames: bytes) -> list[str]:
    """Let a peer send these frames and close; return the lines that the server logs."""
    ours, theirs = memory_pair(patience=5)
    for frame in frames:
        ours.send(frame)
    ours.close()
    lines: list[str] = []
    serve_peer(server, Link(Role.DATA, theirs, QUERY_TABLE), log=lines.append)
    return lines


def test_a_conversation_ends_with_a_farewell(finished: "FinishedRun") -> None:
    messages: list[Message] = [
        hello_of(finished),
        EmbeddingQuery(1, ("u01", "x")),
        EmbeddingQuery(2, ()),
        Farewell(),
    ]
    with open_embedding_server(finished.data) as server:
        lines = connected_to_server(server, *map(encode, messages))
    assert lines == ["returned embeddings of 1 nodes, 1 unknown (epsilon 8 of 8)"]


@pytest.mark.parametrize(
    ("wrong", "problem"),
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
def test_wrong_peers_are_disconnected(
    finished: "FinishedRun", wrong: dict[str, Any], problem: str
) -> None:
    with open_embedding_server(finished.data) as server, pytest.raises(PeerError, match=problem):
        connected_to_server(
            server, encode(hello_of(finished, **wrong)), encode(EmbeddingQuery(1, ("u01",)))
        )


def test_a_query_of_millions_of_ids_is_refused_before_they_are_decoded(
    finished: "FinishedRun", monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []

    class LimitNoting(MemoryChannel):
        def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
            limits.append(limit)
            return super().receive(limit)

    monkeypatch.setattr(memory, "MemoryChannel", LimitNoting)
    decoded: list[int] = []

    def note(reader: fields.FrameReader, count: int) -> list[bytes]:
        decoded.append(count)
        return []

    monkeypatch.setattr(fields.FrameReader, "read_chunks", note)
    query = encode(EmbeddingQuery(1, ("",) * (MAX_IDS + 1)))
    with (
        open_embedding_server(finished.data) as server,
        pytest.raises(RemoteProtocolError, match="sent 8193 ids, the limit is 8192"),
    ):
        connected_to_server(server, encode(hello_of(finished)), query)
    assert decoded == []
    assert limits[1] <= 40 << 20


def test_messages_out_of_turn_are_the_peers_fault(finished: "FinishedRun") -> None:
    wrong: list[list[Message]] = [
        [EmbeddingQuery(1, ("u01",))],
        [Farewell()],
        [LabelHello(PROTOCOL_VERSION, "", 2)],
        [hello_of(finished), hello_of(finished)],
        [hello_of(finished), DataHello(PROTOCOL_VERSION, "", 1, 1)],
    ]
    before = finished.ledger.read_bytes()
    with open_embedding_server(finished.data) as server:
        for messages in wrong:
            with pytest.raises(PeerError, match="expected"):
                connected_to_server(server, *map(encode, messages))
    assert finished.ledger.read_bytes() == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_broken_bytes_never_change_the_ledger(finished: "FinishedRun", data: st.DataObject) -> None:
    frames = [encode(hello_of(finished)), encode(EmbeddingQuery(1, ("u01",))), encode(Farewell())]
    broken = data.draw(st.integers(0, 2))
    frame = bytearray(frames[broken])
    at = data.draw(st.integers(0, len(frame) - 1))
    cut = data.draw(st.booleans())
    frame[at] ^= data.draw(st.integers(1, 255))
    frames[broken] = bytes(frame[:at] if cut else frame)
    before = finished.ledger.read_bytes()
    with open_embedding_server(finished.data) as server, suppress(PeerError):
        connected_to_server(server, *frames)
    assert finished.ledger.read_bytes() == before


class StopServingError(Exception):
    """Ends the endless loop of the server."""


def test_after_a_bad_peer_the_next_is_served(
    finished: "FinishedRun", monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [encode(hello_of(finished)), encode(EmbeddingQuery(1, ("u01",))), encode(Farewell())]
    peers = [[b"noise"], [], good]
    ends: list[Any] = []

    @contextmanager
    def connector(*_: Any, **__: Any) -> Iterator[Callable[[float | None], Channel]]:
        def connect(limit: float | None) -> Channel:
            if not peers:
                raise StopServingError
            ours, theirs = memory_pair(patience=1)
            for frame in peers.pop(0):
                ours.send(frame)
            ours.close()
            ends.append(ours)
            return theirs

        yield connect

    monkeypatch.setattr(embedding_server, "peer_connector", connector)
    lines: list[str] = []
    with pytest.raises(StopServingError):
        serve_embeddings(finished.data, log=lines.append)
    text = "\n".join(lines)
    assert "bank was disconnected" in text
    assert "returned embeddings of 1 nodes" in text
    link = Link(Role.LABEL, ends[-1], QUERY_TABLE)
    assert isinstance(link.receive(), EmbeddingServerHello)
    link._turns.record_sent(hello_of(finished))
    link._turns.record_sent(EmbeddingQuery(1, ("u01",)))
    assert isinstance(link.receive(), QueryAnswer)


def test_one_process_at_a_time_and_a_state_folder_must_exist(finished: "FinishedRun") -> None:
    from vesper.deployment.state_folder import state_folder_lock

    with state_folder_lock(finished.data.party.state):
        failed: list[BaseException] = []

        def second() -> None:
            try:
                serve_embeddings(finished.data)
            except InputError as error:
                failed.append(error)

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert "another process" in str(failed[0])
    with (
        pytest.raises(InputError, match="cannot be written"),
        state_folder_lock(finished.root / "none"),
    ):
        pass
