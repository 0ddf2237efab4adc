"""A handshake that fails after the first connection is a lost connection, on real sockets."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.transport.test_grpc_channel import Authority

from vesper.errors import InputError, PeerError, PeerLostError
from vesper.transport import reconnect
from vesper.transport.channel import Channel
from vesper.transport.close_reason import CloseReason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.frame_log import FrameLog
from vesper.transport.grpc_channel import Listener, connect
from vesper.transport.memory import memory_pair
from vesper.transport.reconnect import Reconnector
from vesper.transport.session_greeting import NO_SESSION_ID, SessionGreeting

FRESH = SessionGreeting(NO_SESSION_ID, received=0, sent=0).to_bytes()
PATIENCE = 5.0


class Relay:
    """Forwards connections to a port; `spoil` changes what the target sends, or refuses it."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.spoil: Callable[[bytes], bytes] | None = None
        self.spoiled = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller = self._listener.accept()[0]
                target = socket.create_connection(("127.0.0.1", self._target))
                self._open += [caller, target]
                for source, sink, spoil in (
                    (caller, target, None),
                    (target, caller, self.spoil),
                ):
                    pump = threading.Thread(target=self._pump, args=(source, sink, spoil))
                    pump.daemon = True
                    pump.start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, spoil: Callable[[bytes], bytes] | None
    ) -> None:
        with suppress(OSError):
            while content := source.recv(1 << 16):
                sink.sendall(content if spoil is None else spoil(content))
                if spoil is not None:
                    self.spoiled.set()
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def plain_text(content: bytes) -> bytes:
    return b"HTTP/1.1 503 Service Unavailable\r\n\r\n"


def flipped_byte(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.parametrize("spoil", [plain_text, flipped_byte])
def test_a_failed_handshake_after_the_first_connection_is_reported_and_retried(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    authority, reports = Authority(), list[str]()
    platform = authority.identity("platform")
    listener = Listener("127.0.0.1:0", identity=lambda: platform, peer="bank", patience=PATIENCE)
    identity = authority.identity("bank")

    def dial(limit: float | None) -> Channel:
        return connect(
            f"127.0.0.1:{relay.port}",
            identity=lambda: identity,
            peer="platform",
            patience=PATIENCE,
            limit=limit,
        )

    def end(name: str, connect_to_peer: Callable[[float | None], Channel]) -> DurableChannel:
        (tmp_path / name).mkdir()
        directions = ("d>l", "l>d") if name == "data" else ("l>d", "d>l")
        return DurableChannel(
            connect_to_peer,
            tmp_path / name,
            names_session=name == "data",
            directions=directions,
            reconnects=True,
            lost=reports.append if name == "label" else lambda why: None,
        )

    with closing(listener), closing(Relay(listener.port)) as relay, ThreadPoolExecutor(1) as pool:
        data, label = end("data", listener.accept), end("label", dial)

        def answer() -> None:
            data.send(b"one")
            assert data.receive() == b"two"
            data.send(b"three")
            data.finish(patience=PATIENCE)
            data.linger()

        answering = pool.submit(answer)
        assert label.receive() == b"one"
        relay.spoil = spoil
        relay.cut()

        def recover() -> None:
            relay.spoiled.wait(60)
            while not any("platform: " in line for line in reports):
                assert not answering.done()
                threading.Event().wait(0.05)
            relay.spoil = None

        recovering = threading.Thread(target=recover, daemon=True)
        recovering.start()
        label.send(b"two")
        assert label.receive() == b"three"
        recovering.join()
        label.close()
        answering.result()
        data.close()
    assert all(line.endswith("waiting for it to come back") for line in reports)


def reconnector(
    tmp_path: Path,
    *,
    reconnects: bool,
    reports: list[str],
    failures: list[Exception],
    has_connected: bool = True,
) -> Reconnector:
    """A side that has a connection, which is lost, and then these failures; at last it connects."""
    connections = list[Channel]()
    for last in (b"first", b"second"):
        here, there = memory_pair(patience=1)
        there.send(FRESH)
        there.send(last)
        there.close(CloseReason.FAULT)
        connections.append(here)
    steps: list[Channel | Exception] = [*failures, connections[1]]
    if has_connected:
        steps.insert(0, connections[0])
    remaining = iter(steps)

    def attempt(limit: float | None) -> Channel:
        step = next(remaining)
        if isinstance(step, Exception):
            raise step
        return step

    return Reconnector(
        attempt,
        FrameLog(tmp_path / "frames"),
        tmp_path / "session",
        names_session=True,
        reconnects=reconnects,
        lost=reports.append,
    )


FAILURES: list[Exception] = [
    PeerError("WRONG_VERSION_NUMBER"),
    InputError("the certificate expired at noon"),
]


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnect, "RETRY_SECONDS", 0.01)


def test_every_failed_attempt_is_reported(tmp_path: Path) -> None:
    reports: list[str] = []
    side = reconnector(tmp_path, reconnects=True, reports=reports, failures=FAILURES)
    side.ensure_connected()
    assert side.receive() == b"first"
    assert side.receive() == b"second"
    assert [line.split(" (")[0].split(";")[0] for line in reports[1:]] == [
        "WRONG_VERSION_NUMBER",
        "the certificate expired at noon",
    ]


def test_a_side_that_must_not_wait_ends_as_for_a_lost_peer(tmp_path: Path) -> None:
    side = reconnector(tmp_path, reconnects=False, reports=[], failures=FAILURES)
    side.ensure_connected()
    assert side.receive() == b"first"
    with pytest.raises(PeerLostError):
        side.receive()


def test_a_side_that_has_finished_does_not_wait_longer_than_its_patience(tmp_path: Path) -> None:
    side = reconnector(tmp_path, reconnects=True, reports=[], failures=FAILURES[:1] * 100)
    side.ensure_connected()
    side.finish(patience=0.05)
    assert side.receive() == b"first"
    with pytest.raises(PeerLostError):
        side.receive()


def test_a_side_may_give_up(tmp_path: Path) -> None:
    waited: list[float] = []

    def give_up(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise PeerLostError("others continue")

    side = reconnector(tmp_path, reconnects=True, reports=[], failures=FAILURES[:1] * 100)
    side._waiting = give_up
    side.ensure_connected()
    assert side.receive() == b"first"
    with pytest.raises(PeerLostError, match="others continue"):
        side.receive()
    assert waited == sorted(waited)


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_the_first_connection_of_a_process_fails_at_once(
    tmp_path: Path, failure: Exception
) -> None:
    side = reconnector(
        tmp_path, reconnects=True, reports=[], failures=[failure], has_connected=False
    )
    with pytest.raises(type(failure), match=str(failure)):
        side.ensure_connected()
