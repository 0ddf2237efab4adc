"""A lost connection is replaced once; a thread that waits for the peer does not block others."""

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.deployment.saved_run import read_saved_label_run
from vesper.errors import PeerLostError, RemoteProtocolError
from vesper.protocol import fields
from vesper.protocol.codec import encode
from vesper.protocol.messages import QueryAnswer
from vesper.serving import embedding_client
from vesper.serving.embedding_client import EmbeddingClient
from vesper.serving.embedding_server import open_embedding_server
from vesper.transport.channel import Channel
from vesper.transport.memory import memory_pair

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun


def test_a_lost_connection_is_replaced_and_the_query_repeated(finished: "FinishedRun") -> None:
    with finished.serve() as connect:
        channels: list[Channel] = []

        def record(limit: float | None) -> Channel:
            channels.append(connect(limit))
            return channels[-1]

        client = EmbeddingClient(record, read_saved_label_run(finished.label), peer="platform")
        first = client.query(("u01",), limit=None)
        channels[0].close()  # cut
        again = client.query(("u01",), limit=None)
        client.close()
        client.close()
    assert len(channels) == 2
    assert first[0] == again[0]
    assert isinstance(again[1], QueryAnswer)
    assert client.unreachable_since is None


def test_a_new_connection_that_is_lost_is_not_retried(finished: "FinishedRun") -> None:
    limits: list[float | None] = []

    def refuse(limit: float | None) -> Channel:
        limits.append(limit)
        raise PeerLostError("platform is not there")

    client = EmbeddingClient(refuse, read_saved_label_run(finished.label), peer="platform")
    with pytest.raises(PeerLostError):
        client.query(("u01",), limit=0.5)
    assert limits == [0.5]
    assert client.unreachable_since is not None


def test_a_waiting_query_does_not_block_others(
    finished: "FinishedRun", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_client, "BUSY_TIMEOUT", 0.01)
    waiting, release = threading.Event(), threading.Event()

    def slow(limit: float | None) -> Channel:
        waiting.set()
        release.wait(20)
        raise PeerLostError("platform is not there")

    client = EmbeddingClient(slow, read_saved_label_run(finished.label), peer="platform")

    def first() -> None:
        with pytest.raises(PeerLostError, match="not there"):
            client.query(("u01",), limit=None)

    thread = threading.Thread(target=first)
    thread.start()
    waiting.wait(20)
    with pytest.raises(PeerLostError, match="earlier query"):
        client.query(("u02",), limit=None)
    release.set()
    thread.join()


@pytest.mark.parametrize("count", [5, 50, 1 << 20])
def test_an_answer_with_many_empty_ids_is_refused_before_it_is_decoded(
    finished: "FinishedRun", monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    answer = QueryAnswer(
        1,
        *(1.0, 1e-5, 0.5, 0.5),
        ids_digest=bytes(16),
        unknown=("",) * count,
        values=np.zeros((0, 1, 1), dtype=np.float32),
    )
    frame = encode(answer)
    with open_embedding_server(finished.data) as server:
        hello = encode(server.hello)
    ours, theirs = memory_pair(patience=5)
    for each in (hello, frame):
        theirs.send(each)
    monkeypatch.setattr(fields.FrameReader, "read_chunks", fail)
    client = EmbeddingClient(
        lambda limit: ours, read_saved_label_run(finished.label), peer="platform"
    )
    with pytest.raises(RemoteProtocolError, match=r"the limit is 4|allowed at this point"):
        client.query(("u01", "u02", "u03", "u04"), limit=None)


def fail(*_: object) -> None:
    """Fail: ids are decoded."""
    raise AssertionError
