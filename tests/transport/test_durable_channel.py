"""Frames exactly once, whatever is cut and whoever starts again."""

import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from vesper.errors import LocalProtocolError, PeerError, PeerLostError, RemoteProtocolError
from vesper.transport.channel import Channel
from vesper.transport.close_reason import CloseReason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.memory import MemoryChannel, MemoryRendezvous, memory_pair
from vesper.transport.reconnect import SessionGreeting
from vesper.transport.transcript import first_difference


class Fragile:
    """A connection that is cut after so many calls."""

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

    def receive(self) -> bytes:
        self._use()
        try:
            return self._inner.receive()
        except PeerLostError:
            self._inner.close(CloseReason.FAULT)
            raise

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._inner.close(why)


class Rendezvous:
    """A meeting whose connections are cut after some calls."""

    def __init__(self, calls: random.Random | None = None) -> None:
        self._meeting, self._calls = MemoryRendezvous(patience=20), calls

    def connect(self, role: str, limit: float | None) -> Channel:
        inner = self._meeting.connect(0 if role == "data" else 1, limit)
        return Fragile(inner, self._calls.randint(3, 15) if self._calls else 1 << 30)


def end(place: Rendezvous, role: str, folder: Path, *, reconnects: bool = True) -> DurableChannel:
    folder.mkdir(exist_ok=True)
    directions = ("d>l", "l>d") if role == "data" else ("l>d", "d>l")
    connect = partial(place.connect, role)
    return DurableChannel(
        connect, folder, names_session=role == "data", directions=directions, reconnects=reconnects
    )


def talk(channel: DurableChannel, role: str, turns: range, *, marks: int = 0) -> list[bytes]:
    """Say a number, hear a number: the data side first."""
    heard = []
    for turn in turns:
        if marks and turn % marks == 0 and turn > 0:
            channel.flush_received()
            channel.mark_checkpoint()
        if role == "data":
            channel.send(b"question %d" % turn)
            heard.append(channel.receive())
        else:
            heard.append(channel.receive())
            channel.send(b"answer %d" % turn)
    return heard


def both(place: Rendezvous, tmp_path: Path, turns: range, *, marks: int = 0) -> None:
    def side(role: str) -> list[bytes]:
        with closing(end(place, role, tmp_path / role)) as channel:
            heard = talk(channel, role, turns, marks=marks)
            if role == "label":  # the last answer may have been cut off
                channel.finish(patience=0.5)
                channel.linger()
            return heard

    with ThreadPoolExecutor(2) as pool:
        label = pool.submit(side, "label")
        assert side("data") == [b"answer %d" % turn for turn in turns]
        assert label.result() == [b"question %d" % turn for turn in turns]


def receipts(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "data" / "transcript.tsv", tmp_path / "label" / "transcript.tsv"


def test_without_trouble(tmp_path: Path) -> None:
    both(Rendezvous(), tmp_path, range(20))
    assert first_difference(*receipts(tmp_path)) is None


@pytest.mark.parametrize("seed", range(8))
def test_cut_again_and_again(tmp_path: Path, seed: int) -> None:
    both(Rendezvous(random.Random(seed)), tmp_path, range(60), marks=7)
    assert first_difference(*receipts(tmp_path)) is None
    assert len(receipts(tmp_path)[0].read_text().splitlines()) == 120


def test_a_restart_reads_what_came_and_sends_nothing_twice(tmp_path: Path) -> None:
    both(Rendezvous(), tmp_path, range(5))
    # Both processes died; both go through all their steps again, then on.
    both(Rendezvous(), tmp_path, range(9))
    assert first_difference(*receipts(tmp_path)) is None
    assert len(receipts(tmp_path)[0].read_text().splitlines()) == 18


def test_only_one_side_restarts_from_a_mark(tmp_path: Path) -> None:
    place = Rendezvous()

    def label() -> list[bytes]:
        with closing(end(place, "label", tmp_path / "label")) as channel:
            return talk(channel, "label", range(10))

    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(label)
        first = end(place, "data", tmp_path / "data")
        talk(first, "data", range(4))
        first.flush_received()
        first.mark_checkpoint()
        mark = first.counts
        talk(first, "data", range(4, 6))
        first.send(b"question 6")  # and dies before it hears the answer
        first.close()
        with closing(end(place, "data", tmp_path / "data")) as second:
            second.rewind_to(mark)
            heard = talk(second, "data", range(4, 10))
        assert heard == [b"answer %d" % turn for turn in range(4, 10)]
        assert answering.result() == [b"question %d" % turn for turn in range(10)]
    assert first_difference(*receipts(tmp_path)) is None


def test_other_bytes_than_before_are_never_sent(tmp_path: Path) -> None:
    both(Rendezvous(), tmp_path, range(3))
    with closing(end(Rendezvous(), "data", tmp_path / "data")) as again:
        with pytest.raises(LocalProtocolError, match="other bytes than before"):
            again.send(b"question zero")


def test_sessions_are_not_mixed(tmp_path: Path) -> None:
    both(Rendezvous(), tmp_path, range(3))
    place = Rendezvous()

    def label() -> None:
        with closing(end(place, "label", tmp_path / "label")) as channel:
            channel.rewind_to((3, 3))
            channel.receive()

    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(label)
        with closing(end(place, "data", tmp_path / "new")) as channel:
            with pytest.raises(PeerError, match="is in session"):
                channel.send(b"question 0")
        with pytest.raises(PeerError, match="is in session|closed"):
            answering.result()


def test_a_peer_that_has_lost_its_state_is_told_so(tmp_path: Path) -> None:
    both(Rendezvous(), tmp_path, range(3))
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


def test_who_shall_not_wait_stops(tmp_path: Path) -> None:
    place = Rendezvous(random.Random(1))

    def side(role: str) -> None:
        with closing(end(place, role, tmp_path / role, reconnects=False)) as channel:
            talk(channel, role, range(60))

    with ThreadPoolExecutor(1) as pool:
        label = pool.submit(side, "label")
        with pytest.raises(PeerLostError):
            side("data")
        with pytest.raises(PeerLostError):
            label.result()


@pytest.mark.parametrize("greeting", [b"", b"hello", b"VSPG2" + bytes(3), b"VSPG1" + bytes(32)])
def test_a_strange_greeting_is_refused(tmp_path: Path, greeting: bytes) -> None:
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


def test_a_peer_that_claims_frames_which_were_never_sent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    meetings = [memory_pair(patience=5) for _ in range(2)]
    ours = iter(meetings)
    channel = DurableChannel(
        lambda limit: next(ours)[0],
        tmp_path / "data",
        names_session=True,
        directions=("a", "b"),
        reconnects=True,
    )
    session = bytes.fromhex(channel.session)
    for (_, theirs), known in zip(meetings, (0, 9), strict=True):
        theirs.send(SessionGreeting(session, received=known, sent=0).to_bytes())
    with closing(channel):
        channel.send(b"question 0")
        meetings[0][1].close(CloseReason.FAULT)
        with pytest.raises(RemoteProtocolError, match="has 9 frames; so many were not sent"):
            channel.receive()


def test_a_log_that_was_lost_with_the_power_is_made_again(tmp_path: Path) -> None:
    place = Rendezvous()
    both(place, tmp_path, range(6))
    for name in ("frames", "transcript.tsv"):  # all since the beginning, or the end of it
        path = tmp_path / "data" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    both(place, tmp_path, range(9))
    assert first_difference(*receipts(tmp_path)) is None
