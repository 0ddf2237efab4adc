"""One connection after the other: who is waited for, who is not, and what is said meanwhile."""

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import PeerError, PeerLostError, PeerStoppedError, RemoteProtocolError
from vesper.transport.close_reason import Parting
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog
from vesper.transport.memory import MemoryChannel, memory_pair
from vesper.transport.reconnect import NO_SESSION, Greeting, Meetings

FRESH = Greeting(NO_SESSION, received=0, sent=0).packed()


def peers(visits: Iterable[tuple[list[bytes], Parting]]) -> list[MemoryChannel]:
    """Our ends of connections on which the peer says this, and leaves with a word."""
    ours = []
    for frames, parting in visits:
        here, there = memory_pair(patience=1)
        for frame in frames:
            there.send(frame)
        there.close(parting)
        ours.append(here)
    return ours


def meetings(
    tmp_path: Path,
    channels: list[MemoryChannel],
    *,
    waits: bool = True,
    begins: bool = True,
    said: list[str] | None = None,
) -> Meetings:
    visits, log = iter(channels), FrameLog(tmp_path / "frames")
    lost = (lambda why: None) if said is None else said.append
    return Meetings(
        lambda limit: next(visits), log, tmp_path / "session", begins=begins, waits=waits, lost=lost
    )


@pytest.mark.parametrize("word", [Parting.USER, Parting.FAULT, Parting.DONE])
def test_who_may_come_back_is_waited_for_and_it_is_said(tmp_path: Path, word: Parting) -> None:
    said: list[str] = []
    visits = peers([([FRESH], word), ([FRESH, b"back"], Parting.DONE)])
    place = meetings(tmp_path, visits, said=said)
    place.meet()
    assert place.receive() == b"back"
    assert len(said) == 1
    assert said[0].startswith("the peer ")
    assert said[0].endswith("; waiting for it to come back")
    assert ("stopped by its user" in said[0]) is (word is Parting.USER)


@pytest.mark.parametrize(
    "word", [Parting.BUDGET, Parting.SETTINGS, Parting.PROTOCOL, Parting.WITHOUT]
)
@pytest.mark.parametrize("has_greeted", [True, False])
def test_who_needs_a_person_is_not_waited_for(
    tmp_path: Path, word: Parting, has_greeted: bool
) -> None:
    said: list[str] = []
    place = meetings(tmp_path, peers([([FRESH] * has_greeted, word)]), said=said)
    ask: Callable[[], object] = place.meet
    if has_greeted:
        place.meet()
        ask = place.receive
    with pytest.raises(PeerStoppedError, match="the peer has ended the session"):
        ask()
    assert said == []


def test_who_shall_not_wait_is_told_once(tmp_path: Path) -> None:
    said: list[str] = []
    visits = peers([([FRESH], Parting.USER)])
    place = meetings(tmp_path, visits, waits=False, said=said)
    place.meet()
    with pytest.raises(PeerLostError, match="was stopped by its user"):
        place.receive()
    assert said == []


def test_after_the_end_a_farewell_is_enough_and_anything_else_is_not(tmp_path: Path) -> None:
    visits = peers([([FRESH], Parting.USER), ([FRESH], Parting.DONE)])
    said: list[str] = []
    place = meetings(tmp_path, visits, said=said)
    place.finish(patience=1)
    place.meet()
    with pytest.raises(PeerLostError, match="has closed the connection"):
        place.receive()
    assert len(said) == 1  # the user's stop


@pytest.mark.parametrize(
    ("greeting", "word"),
    [
        (b"noise", Parting.PROTOCOL),
        (Greeting(b"x" * 16, received=1, sent=1).packed(), Parting.SETTINGS),
    ],
)
def test_a_peer_that_is_refused_is_told_so(tmp_path: Path, greeting: bytes, word: Parting) -> None:
    here, there = memory_pair(patience=1)
    there.send(greeting)
    with pytest.raises(PeerError):
        meetings(tmp_path, [here]).meet()
    there.receive()  # our greeting
    with pytest.raises(PeerStoppedError) as told:
        there.receive()
    assert ("refuses what this side has sent" in str(told.value)) is (word is Parting.PROTOCOL)


def test_a_side_that_has_only_greeted_takes_a_new_name_over(tmp_path: Path) -> None:
    visits = peers(
        [
            ([Greeting(b"1" * 16, received=0, sent=0).packed()], Parting.FAULT),
            ([Greeting(b"2" * 16, received=0, sent=0).packed(), b"hello"], Parting.DONE),
        ]
    )
    place = meetings(tmp_path, visits, begins=False)
    place.meet()
    assert (tmp_path / "session").read_bytes() == b"1" * 16
    assert place.receive() == b"hello"
    assert (tmp_path / "session").read_bytes() == b"2" * 16


def test_a_side_in_the_middle_keeps_its_name_and_refuses(tmp_path: Path) -> None:
    with closing(FrameLog(tmp_path / "frames")) as log:
        log.append(RECEIVED, 0, b"hello")
        log.append(SENT, 0, b"hello")
    (tmp_path / "session").write_bytes(b"1" * 16)
    visits = peers([([Greeting(b"2" * 16, received=0, sent=0).packed()], Parting.DONE)])
    with pytest.raises(PeerError, match="has begun anew"):
        meetings(tmp_path, visits, begins=False).meet()
    assert (tmp_path / "session").read_bytes() == b"1" * 16


def test_what_a_peer_had_at_the_first_meeting_it_may_have_at_the_next(tmp_path: Path) -> None:
    """Our log was lost with the power; it is not the peer's fault that it is cut off, too."""
    (tmp_path / "session").write_bytes(b"1" * 16)
    ahead, more = (Greeting(b"1" * 16, received=n, sent=9).packed() for n in (9, 10))
    visits = peers([([ahead], Parting.FAULT), ([ahead], Parting.FAULT), ([more], Parting.FAULT)])
    place = meetings(tmp_path, visits)
    place.meet()
    assert place.peer.received == 9
    with pytest.raises(RemoteProtocolError, match="has 10 frames; so many were not sent"):
        place.receive()


def test_a_peer_that_comes_and_goes_is_told_of_once_and_counted(tmp_path: Path) -> None:
    said: list[str] = []
    words = [Parting.DONE, Parting.USER] * 60
    visits = [([FRESH], word) for word in words]
    visits += [([FRESH, b"a word"], Parting.DONE), ([FRESH, b"another"], Parting.DONE)]
    place = meetings(tmp_path, peers(visits), said=said)
    place.meet()
    assert place.receive() == b"a word"
    assert [line.partition(";")[0].removeprefix("the peer ") for line in said] == [
        "has closed the connection",
        "was stopped by its user (2 times now without a word)",
        "was stopped by its user (10 times now without a word)",
        "was stopped by its user (100 times now without a word)",
    ]
    said.clear()
    assert place.receive() == b"another"
    assert said == ["the peer has closed the connection; waiting for it to come back"]
