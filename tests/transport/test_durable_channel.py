"""Frames exactly once, whichever connection is cut and whichever side restarts."""

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from vesper.errors import LocalProtocolError, PeerError, PeerLostError, RemoteProtocolError
from vesper.transport.channel import MAX_FRAME_BYTES, Channel
from vesper.transport.close_reason import CloseReason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.memory import MemoryChannel, MemoryRendezvous, memory_pair
from vesper.transport.session_greeting import SessionGreeting
from vesper.transport.transcript import first_difference


class FragileChannel:
    """A connection that is cut after a number of calls."""

    def __init__(self, inner: MemoryChannel, calls: int) -> None:
        self._inner, self._calls = inner, calls

    def _use(self) -> None:
        self._calls -= 1
        if self._calls <= 0:
            self._inner.close(CloseReason.FAULT)
            raise PeerLostError("cut")

    def send(self, frame: bytes) -> None:
        self._use()
        self._inner.send(frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        self._use()
        try:
            return self._inner.receive(limit)
        except PeerLostError:
            self._inner.close(CloseReason.FAULT)
            raise

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._inner.close(why)


class Rendezvous:
    """Connects two ends; connections are cut after a random number of calls."""

    def __init__(self, calls: random.Random | None = None) -> None:
        self._rendezvous, self._calls = MemoryRendezvous(patience=20), calls

    def connect(self, role: str, limit: float | None) -> Channel:
        inner = self._rendezvous.connect(0 if role == "data" else 1, limit)
        return FragileChannel(inner, self._calls.randint(3, 15) if self._calls else 1 << 30)


def end(place: Rendezvous, role: str, folder: Path, *, reconnects: bool = True) -> DurableChannel:
    folder.mkdir(exist_ok=True)
    directions = ("d>l", "l>d") if role == "data" else ("l>d", "d>l")
    connect = partial(place.connect, role)
    return DurableChannel(
        connect, folder, names_session=role == "data", directions=directions, reconnects=reconnects
    )


def exchange(
    channel: DurableChannel, role: str, turns: range, *, checkpoint_every: int = 0
) -> list[bytes]:
    """Send and receive a numbered frame per turn, the data side first; return frames received."""
    received = []
    for turn in turns:
        if checkpoint_every and turn % checkpoint_every == 0 and turn > 0:
            channel.flush_received()
            channel.mark_checkpoint()
        if role == "data":
            channel.send(b"question %d" % turn)
            received.append(channel.receive())
        else:
            received.append(channel.receive())
            channel.send(b"answer %d" % turn)
    return received


def run_both(place: Rendezvous, tmp_path: Path, turns: range, *, checkpoint_every: int = 0) -> None:
    def side(role: str) -> list[bytes]:
        with closing(end(place, role, tmp_path / role)) as channel:
            received = exchange(channel, role, turns, checkpoint_every=checkpoint_every)
            if role == "label":  # the last answer may have been cut off
                channel.finish(patience=0.5)
                channel.linger()
            return received

    with ThreadPoolExecutor(2) as pool:
        label = pool.submit(side, "label")
        assert side("data") == [b"answer %d" % turn for turn in turns]
        assert label.result() == [b"question %d" % turn for turn in turns]


def transcripts(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "data" / "transcript.tsv", tmp_path / "label" / "transcript.tsv"


def test_a_finished_peer_that_has_everything_is_not_waited_for(tmp_path: Path) -> None:
    turns, place = range(3), Rendezvous()
    run_both(place, tmp_path, turns)
    shutil.rmtree(tmp_path / "label" / "frames")  # lost in a power failure

    def help_peer() -> None:
        with closing(end(place, "data", tmp_path / "data")) as channel:
            channel.finish(patience=5)
            channel.connect_now()
            channel.linger(expects_last_frame=True)

    def repeat() -> list[bytes]:
        with closing(end(place, "label", tmp_path / "label")) as channel:
            received = exchange(channel, "label", turns)
            channel.finish(patience=5)
            channel.linger()
            return received

    with ThreadPoolExecutor(2) as pool:
        helper = pool.submit(help_peer)
        assert repeat() == [b"question %d" % turn for turn in turns]
        helper.result()
    assert first_difference(*transcripts(tmp_path)) is None


def test_on_stable_connections(tmp_path: Path) -> None:
    run_both(Rendezvous(), tmp_path, range(20))
    assert first_difference(*transcripts(tmp_path)) is None


@pytest.mark.parametrize("seed", range(8))
def test_on_connections_that_are_cut_repeatedly(tmp_path: Path, seed: int) -> None:
    run_both(Rendezvous(random.Random(seed)), tmp_path, range(60), checkpoint_every=7)
    assert first_difference(*transcripts(tmp_path)) is None
    assert len(transcripts(tmp_path)[0].read_text().splitlines()) == 120


def test_a_restart_reads_received_frames_from_the_log_and_sends_nothing_twice(
    tmp_path: Path,
) -> None:
    run_both(Rendezvous(), tmp_path, range(5))
    # Both processes died; both repeat all their steps, then continue.
    run_both(Rendezvous(), tmp_path, range(9))
    assert first_difference(*transcripts(tmp_path)) is None
    assert len(transcripts(tmp_path)[0].read_text().splitlines()) == 18


def test_only_one_side_restarts_from_a_checkpoint(tmp_path: Path) -> None:
    place = Rendezvous()

    def label() -> list[bytes]:
        with closing(end(place, "label", tmp_path / "label")) as channel:
            return exchange(channel, "label", range(10))

    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(label)
        first = end(place, "data", tmp_path / "data")
        exchange(first, "data", range(4))
        first.flush_received()
        first.mark_checkpoint()
        checkpoint = first.counts
        exchange(first, "data", range(4, 6))
        first.send(b"question 6")  # and dies before it receives the answer
        first.close()
        with closing(end(place, "data", tmp_path / "data")) as second:
            second.rewind_to(checkpoint)
            received = exchange(second, "data", range(4, 10))
        assert received == [b"answer %d" % turn for turn in range(4, 10)]
        assert answering.result() == [b"question %d" % turn for turn in range(10)]
    assert first_difference(*transcripts(tmp_path)) is None


def test_other_bytes_than_before_are_never_sent(tmp_path: Path) -> None:
    run_both(Rendezvous(), tmp_path, range(3))
    with (
        closing(end(Rendezvous(), "data", tmp_path / "data")) as again,
        pytest.raises(LocalProtocolError, match="other bytes than before"),
    ):
        again.send(b"question zero")


def test_sessions_are_not_mixed(tmp_path: Path) -> None:
    run_both(Rendezvous(), tmp_path, range(3))
    place = Rendezvous()

    def label() -> None:
        with closing(end(place, "label", tmp_path / "label")) as channel:
            channel.rewind_to((3, 3))
            channel.receive()

    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(label)
        with (
            closing(end(place, "data", tmp_path / "new")) as channel,
            pytest.raises(PeerError, match="is in session"),
        ):
            channel.send(b"question 0")
        with pytest.raises(PeerError, match=r"is in session|closed"):
            answering.result()


def test_a_peer_that_has_lost_its_state_is_refused(tmp_path: Path) -> None:
    run_both(Rendezvous(), tmp_path, range(3))
    place = Rendezvous()

    def label() -> None:
        with closing(end(place, "label", tmp_path / "fresh")) as channel:
            channel.receive()

    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(label)
        with closing(end(place, "data", tmp_path / "data")) as channel:
            channel.rewind_to((3, 3))
            with pytest.raises(PeerError, match="has lost its state"):
                channel.send(b"question 3")
        with pytest.raises(PeerError):
            answering.result()


def test_without_reconnecting_a_lost_connection_is_an_error(tmp_path: Path) -> None:
    place = Rendezvous(random.Random(1))

    def side(role: str) -> None:
        with closing(end(place, role, tmp_path / role, reconnects=False)) as channel:
            exchange(channel, role, range(60))

    with ThreadPoolExecutor(1) as pool:
        label = pool.submit(side, "label")
        with pytest.raises(PeerLostError):
            side("data")
        with pytest.raises(PeerLostError):
            label.result()


@pytest.mark.parametrize("greeting", [b"", b"hello", b"VSPG2" + bytes(3), b"VSPG1" + bytes(32)])
def test_a_malformed_greeting_is_refused(tmp_path: Path, greeting: bytes) -> None:
    ours, theirs = memory_pair(patience=5)
    theirs.send(greeting)
    (tmp_path / "data").mkdir()
    channel = DurableChannel(
        lambda limit: ours,
        tmp_path / "data",
        names_session=True,
        directions=("a", "b"),
        reconnects=True,
    )
    with closing(channel), pytest.raises(RemoteProtocolError, match="greeting"):
        channel.send(b"x")


def test_a_peer_that_claims_frames_never_sent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    connections = [memory_pair(patience=5) for _ in range(2)]
    ours = iter(connections)
    channel = DurableChannel(
        lambda limit: next(ours)[0],
        tmp_path / "data",
        names_session=True,
        directions=("a", "b"),
        reconnects=True,
    )
    session = bytes.fromhex(channel.session)
    for (_, theirs), known in zip(connections, (0, 9), strict=True):
        theirs.send(SessionGreeting(session, received=known, sent=0).to_bytes())
    with closing(channel):
        channel.send(b"question 0")
        connections[0][1].close(CloseReason.FAULT)
        with pytest.raises(RemoteProtocolError, match="reports 9 frames, more than were sent"):
            channel.receive()


def test_a_log_that_was_lost_in_a_power_failure_is_rebuilt(tmp_path: Path) -> None:
    place = Rendezvous()
    run_both(place, tmp_path, range(6))
    for name in ("frames", "transcript.tsv"):  # from the beginning
        path = tmp_path / "data" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    run_both(place, tmp_path, range(9))
    assert first_difference(*transcripts(tmp_path)) is None
