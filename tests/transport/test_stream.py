"""Two stream ends connected by threads: whole frames, detected silence, refused garbage."""

import threading
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import PeerError, PeerLostError, PeerStoppedError, RemoteProtocolError
from vesper.transport import stream
from vesper.transport.close_reason import CloseReason, error_for_close_reason
from vesper.transport.stream import CHUNK, StreamChannel

CLOSE_CHUNKS = [stream.CLOSE_CHUNK + bytes([why]) for why in CloseReason]


@pytest.fixture(autouse=True)
def short_close_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer never ends these streams, so closing must not wait for that."""
    monkeypatch.setattr(stream, "CLOSE_TIMEOUT", 0.01)


def pair(patience: float = 5.0) -> tuple[StreamChannel, StreamChannel]:
    ends = [
        StreamChannel(peer=name, patience=patience, cancel=lambda: None)
        for name in ("bank", "platform")
    ]

    def pump(source: StreamChannel, target: StreamChannel) -> None:
        for chunk in source.outgoing_chunks():
            target.receive_chunk(chunk)
        target.end_input(PeerLostError("closed"))

    for source, target in (ends, ends[::-1]):
        threading.Thread(target=pump, args=(source, target), daemon=True).start()
    return ends[0], ends[1]


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_a_frame_of_any_size_arrives_whole(size: int) -> None:
    one, other = pair()
    frame = bytes(k % 251 for k in range(size))
    one.send(frame)
    assert other.receive() == frame
    one.close()


def test_frames_arrive_in_order() -> None:
    one, other = pair()
    for number in range(50):
        one.send(bytes([number]) * number)
    assert [len(other.receive()) for _ in range(50)] == list(range(50))
    one.close()


def test_heartbeats_reset_the_patience_and_silence_ends_it() -> None:
    waited: list[float] = []
    channel = StreamChannel(peer="bank", patience=0.4, cancel=lambda: None, waiting=waited.append)
    started = monotonic()
    for k in range(3):  # heartbeats, but no frame
        threading.Timer(
            0.3 * (k + 1), channel.receive_chunk, args=(stream.HEARTBEAT_CHUNK,)
        ).start()
    with pytest.raises(PeerLostError, match=r"bank has been silent for .* \(patience 0.4 s\)"):
        channel.receive()
    assert monotonic() - started > 0.9  # every heartbeat restarted the patience
    assert waited


def test_after_the_end_every_call_raises() -> None:
    one, other = pair()
    one.close()
    for _ in range(2):
        with pytest.raises(PeerLostError, match="closed"):
            other.receive()
    with pytest.raises(PeerLostError, match="closed"):
        other.send(b"x")


@pytest.mark.parametrize("why", CloseReason)
def test_the_peer_receives_the_close_reason_after_all_frames(why: CloseReason) -> None:
    one, other = pair()
    one.send(b"last")
    one.close(why)
    assert other.receive() == b"last"
    with pytest.raises(PeerError) as raised:
        other.receive()
    assert str(raised.value) == str(error_for_close_reason(why, "platform"))


def test_a_peer_that_sends_garbage_receives_the_reason() -> None:
    one, other = pair()
    other.receive_chunk(b"garbage")
    other.receive_chunk(stream.CLOSE_CHUNK + b"\1")  # whatever it sends after that
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match="not part of a frame"):
            other.receive()
    other.close(CloseReason.PROTOCOL)
    with pytest.raises(PeerStoppedError, match="rejects what this side has sent"):
        one.receive()


@pytest.mark.parametrize("content", [b"", b"\x0a", b"\xff", b"\0\0", b"\3" * 300])
def test_an_unknown_close_reason_is_garbage(content: bytes) -> None:
    end = StreamChannel(peer="bank", patience=0.2, cancel=lambda: None)
    end.receive_chunk(stream.CLOSE_CHUNK + content)
    with pytest.raises(RemoteProtocolError):
        end.receive()


@given(st.binary(max_size=20))
def test_any_chunk_is_a_frame_or_refused(chunk: bytes) -> None:
    end = StreamChannel(peer="bank", patience=0.2, cancel=lambda: None)
    end.receive_chunk(chunk)
    end.end_input(PeerLostError("over"))
    try:
        frame = end.receive()
        assert chunk[:1] == stream.LAST_CHUNK
        assert frame == chunk[1:]
    except RemoteProtocolError:
        assert chunk[:1] not in (stream.HEARTBEAT_CHUNK, stream.PART_CHUNK, stream.LAST_CHUNK)
        assert chunk not in CLOSE_CHUNKS
    except PeerError:
        assert chunk[:1] in (stream.HEARTBEAT_CHUNK, stream.PART_CHUNK) or chunk in CLOSE_CHUNKS


def feed(end: StreamChannel, chunk: bytes, count: int) -> threading.Thread:
    """Let a thread of its own receive chunks, as a connection does."""

    def read() -> None:
        for _ in range(count):
            end.receive_chunk(chunk)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def held(end: StreamChannel) -> int:
    return end._held_bytes


@pytest.mark.parametrize("limit", [37, 1 << 16, 3 << 20])
def test_a_frame_above_the_limit_is_refused_before_it_is_held(limit: int) -> None:
    end = StreamChannel(peer="bank", patience=5.0, cancel=lambda: None)
    reading = feed(end, stream.PART_CHUNK + bytes(CHUNK), 4000)  # 1000 MiB
    with pytest.raises(RemoteProtocolError, match=f"more than the {limit} bytes that are allowed"):
        end.receive(limit)
    reading.join()  # what follows is dropped
    assert held(end) <= limit + stream.READ_AHEAD + CHUNK


@pytest.mark.parametrize("size", [36, 37, 38, 100_000])
def test_a_short_frame_is_refused_above_the_limit_only(size: int) -> None:
    end = StreamChannel(peer="bank", patience=5.0, cancel=lambda: None)
    end.receive_chunk(stream.LAST_CHUNK + bytes(size))
    if size <= 37:
        assert end.receive(37) == bytes(size)
        return
    with pytest.raises(RemoteProtocolError, match="more than the 37 bytes"):
        end.receive(37)


def test_little_is_read_ahead_and_the_rest_once_it_is_due() -> None:
    one, other = pair()
    frames = [bytes([k]) * (5 * CHUNK) for k in range(6)]
    for frame in frames:
        one.send(frame)
    for frame in frames:
        assert held(other) <= stream.READ_AHEAD
        assert other.receive(5 * CHUNK) == frame
    one.close()


@pytest.mark.parametrize(
    "chunk",
    [stream.PART_CHUNK + b"xy", stream.LAST_CHUNK, stream.LAST_CHUNK + b"frame"],
    ids=["parts", "empty frames", "frames"],
)
def test_holding_many_small_chunks_is_bounded(chunk: bytes) -> None:
    end = StreamChannel(peer="bank", patience=5.0, cancel=lambda: None)
    reading = feed(end, chunk, stream.READ_AHEAD // stream.CHUNK_OVERHEAD + 100)
    reading.join(timeout=0.5)
    assert reading.is_alive()  # it waits for room
    assert held(end) <= stream.READ_AHEAD
    end.abandon()
    reading.join()


def test_a_large_frame_in_tiny_parts_is_refused() -> None:
    end = StreamChannel(peer="bank", patience=5.0, cancel=lambda: None)
    feed(end, stream.PART_CHUNK + b"xy", 1 << 20)
    with pytest.raises(RemoteProtocolError, match="allowed at this point"):
        end.receive(8 * CHUNK)


def test_an_empty_part_is_refused() -> None:
    end = StreamChannel(peer="bank", patience=5.0, cancel=lambda: None)
    end.receive_chunk(stream.PART_CHUNK)
    with pytest.raises(RemoteProtocolError, match="not part of a frame"):
        end.receive()


def test_reading_ahead_is_not_mistaken_for_silence() -> None:
    end = StreamChannel(peer="bank", patience=0.4, cancel=lambda: None)
    feed(end, stream.LAST_CHUNK + bytes(2 * CHUNK), 3)
    threading.Event().wait(1.0)  # this side computes, and the reading thread waits for room
    for _ in range(3):
        assert len(end.receive()) == 2 * CHUNK


def test_a_peer_that_is_too_late_learns_that_others_continue() -> None:
    one, other = pair(patience=0.4)

    def give_up(seconds: float) -> None:
        raise PeerLostError("platform is late")

    other._waiting = give_up
    with pytest.raises(PeerLostError, match="platform is late"):
        other.receive()
    with pytest.raises(PeerStoppedError, match="continues without this side"):
        one.receive()
