"""One connection after the other: who is waited for, who is not, and what is said meanwhile."""

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import PeerError, PeerLostError, PeerStoppedError, RemoteProtocolError
from vesper.transport.close_reason import CloseReason
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog
from vesper.transport.memory import MemoryChannel, memory_pair
from vesper.transport.reconnect import NO_SESSION_ID, Reconnector, SessionGreeting

FRESH = SessionGreeting(NO_SESSION_ID, received=0, sent=0).to_bytes()


def peers(visits: Iterable[tuple[list[bytes], CloseReason]]) -> list[MemoryChannel]:
    """Our ends of connections on which the peer says this, and leaves with a word."""
    ours = []
    for frames, parting in visits:
        here, there = memory_pair(patience=1)
        for frame in frames:
            there.send(frame)
        there.close(parting)
        ours.append(here)
    return ours


def make_reconnector(
    tmp_path: Path,
    channels: list[MemoryChannel],
    *,
    reconnects: bool = True,
    names_session: bool = True,
    said: list[str] | None = None,
) -> Reconnector:
    visits, log = iter(channels), FrameLog(tmp_path / "frames")
    lost = (lambda why: None) if said is None else said.append
    return Reconnector(
        lambda limit: next(visits),
        log,
        tmp_path / "session",
        names_session=names_session,
        reconnects=reconnects,
        lost=lost,
    )


@pytest.mark.parametrize("word", [CloseReason.USER, CloseReason.FAULT, CloseReason.DONE])
def test_who_may_come_back_is_waited_for_and_it_is_said(tmp_path: Path, word: CloseReason) -> None:
    said: list[str] = []
    visits = peers([([FRESH], word), ([FRESH, b"back"], CloseReason.DONE)])
    place = make_reconnector(tmp_path, visits, said=said)
    place.ensure_connected()
    assert place.receive() == b"back"
    assert len(said) == 1
    assert said[0].startswith("the peer ")
    assert said[0].endswith("; waiting for it to come back")
    assert ("stopped by its user" in said[0]) is (word is CloseReason.USER)


@pytest.mark.parametrize(
    "word", [CloseReason.BUDGET, CloseReason.SETTINGS, CloseReason.PROTOCOL, CloseReason.EXCLUDED]
)
@pytest.mark.parametrize("has_greeted", [True, False])
def test_who_needs_a_person_is_not_waited_for(
    tmp_path: Path, word: CloseReason, has_greeted: bool
) -> None:
    said: list[str] = []
    place = make_reconnector(tmp_path, peers([([FRESH] * has_greeted, word)]), said=said)
    ask: Callable[[], object] = place.ensure_connected
    if has_greeted:
        place.ensure_connected()
        ask = place.receive
    with pytest.raises(PeerStoppedError, match="the peer has ended the session"):
        ask()
    assert said == []


def test_who_shall_not_wait_is_told_once(tmp_path: Path) -> None:
    said: list[str] = []
    visits = peers([([FRESH], CloseReason.USER)])
    place = make_reconnector(tmp_path, visits, reconnects=False, said=said)
    place.ensure_connected()
    with pytest.raises(PeerLostError, match="was stopped by its user"):
        place.receive()
    assert said == []


def test_after_the_end_a_farewell_is_enough_and_anything_else_is_not(tmp_path: Path) -> None:
    visits = peers([([FRESH], CloseReason.USER), ([FRESH], CloseReason.DONE)])
    said: list[str] = []
    place = make_reconnector(tmp_path, visits, said=said)
    place.finish(patience=1)
    place.ensure_connected()
    with pytest.raises(PeerLostError, match="has closed the connection"):
        place.receive()
    assert len(said) == 1  # the user's stop


@pytest.mark.parametrize(
    ("greeting", "word"),
    [
        (b"noise", CloseReason.PROTOCOL),
        (SessionGreeting(b"x" * 16, received=1, sent=1).to_bytes(), CloseReason.SETTINGS),
    ],
)
def test_a_peer_that_is_refused_is_told_so(
    tmp_path: Path, greeting: bytes, word: CloseReason
) -> None:
    here, there = memory_pair(patience=1)
    there.send(greeting)
    with pytest.raises(PeerError):
        make_reconnector(tmp_path, [here]).ensure_connected()
    there.receive()  # our greeting
    with pytest.raises(PeerStoppedError) as told:
        there.receive()
    assert ("refuses what this side has sent" in str(told.value)) is (word is CloseReason.PROTOCOL)


def test_a_side_that_has_only_greeted_takes_a_new_name_over(tmp_path: Path) -> None:
    visits = peers(
        [
            ([SessionGreeting(b"1" * 16, received=0, sent=0).to_bytes()], CloseReason.FAULT),
            (
                [SessionGreeting(b"2" * 16, received=0, sent=0).to_bytes(), b"hello"],
                CloseReason.DONE,
            ),
        ]
    )
    place = make_reconnector(tmp_path, visits, names_session=False)
    place.ensure_connected()
    assert (tmp_path / "session").read_bytes() == b"1" * 16
    assert place.receive() == b"hello"
    assert (tmp_path / "session").read_bytes() == b"2" * 16


def test_a_side_in_the_middle_keeps_its_name_and_refuses(tmp_path: Path) -> None:
    with closing(FrameLog(tmp_path / "frames")) as log:
        log.append(RECEIVED, 0, b"hello")
        log.append(SENT, 0, b"hello")
    (tmp_path / "session").write_bytes(b"1" * 16)
    visits = peers(
        [([SessionGreeting(b"2" * 16, received=0, sent=0).to_bytes()], CloseReason.DONE)]
    )
    with pytest.raises(PeerError, match="has begun anew"):
        make_reconnector(tmp_path, visits, names_session=False).ensure_connected()
    assert (tmp_path / "session").read_bytes() == b"1" * 16


def test_what_a_peer_had_at_the_first_meeting_it_may_have_at_the_next(tmp_path: Path) -> None:
    """Our log was lost with the power; it is not the peer's fault that it is cut off, too."""
    (tmp_path / "session").write_bytes(b"1" * 16)
    ahead, more = (SessionGreeting(b"1" * 16, received=n, sent=9).to_bytes() for n in (9, 10))
    visits = peers(
        [([ahead], CloseReason.FAULT), ([ahead], CloseReason.FAULT), ([more], CloseReason.FAULT)]
    )
    place = make_reconnector(tmp_path, visits)
    place.ensure_connected()
    assert place.peer.received == 9
    with pytest.raises(RemoteProtocolError, match="has 10 frames; so many were not sent"):
        place.receive()


def test_a_peer_that_comes_and_goes_is_told_of_once_and_counted(tmp_path: Path) -> None:
    said: list[str] = []
    words = [CloseReason.DONE, CloseReason.USER] * 60
    visits = [([FRESH], word) for word in words]
    visits += [([FRESH, b"a word"], CloseReason.DONE), ([FRESH, b"another"], CloseReason.DONE)]
    place = make_reconnector(tmp_path, peers(visits), said=said)
    place.ensure_connected()
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
