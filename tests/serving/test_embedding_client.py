"""A lost connection is replaced once; a thread that waits for the peer does not block others."""

import threading
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.saved_run import read_saved_label_run
from vesper.errors import PeerLostError
from vesper.protocol.messages import QueryAnswer
from vesper.serving import embedding_client
from vesper.serving.embedding_client import EmbeddingClient
from vesper.transport.channel import Channel

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
