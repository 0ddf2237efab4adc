"""Reconnecting: which peers are waited for, and what is reported in the meantime."""

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import PeerError, PeerLostError, PeerStoppedError, RemoteProtocolError
from vesper.transport.close_reason import CloseReason
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog
from vesper.transport.memory import MemoryChannel, memory_pair
from vesper.transport.reconnect import Reconnector
from vesper.transport.session_greeting import NO_SESSION_ID, SessionGreeting

FRESH = SessionGreeting(NO_SESSION_ID, received=0, sent=0).to_bytes()


def peer_connections(visits: Iterable[tuple[list[bytes], CloseReason]]) -> list[MemoryChannel]:
    """Our ends of connections on which the peer sends these frames and then closes."""
    ours = []
    for frames, reason in visits:
        here, there = memory_pair(patience=1)
        for frame in frames:
            there.send(frame)
        there.close(reason)
        ours.append(here)
    return ours


def make_reconnector(
    tmp_path: Path,
    channels: list[MemoryChannel],
    *,
    reconnects: bool = True,
    names_session: bool = True,
    reports: list[str] | None = None,
) -> Reconnector:
    visits, log = iter(channels), FrameLog(tmp_path / "frames")
    lost = (lambda why: None) if reports is None else reports.append
    return Reconnector(
        lambda limit: next(visits),
        log,
        tmp_path / "session",
        names_session=names_session,
        reconnects=reconnects,
        lost=lost,
    )


@pytest.mark.parametrize("reason", [CloseReason.USER, CloseReason.FAULT, CloseReason.DONE])
def test_a_peer_that_may_come_back_is_waited_for_and_reported(
    tmp_path: Path, reason: CloseReason
) -> None:
    reports: list[str] = []
    visits = peer_connections([([FRESH], reason), ([FRESH, b"back"], CloseReason.DONE)])
    reconnector = make_reconnector(tmp_path, visits, reports=reports)
    reconnector.ensure_connected()
    assert reconnector.receive() == b"back"
    assert len(reports) == 1
    assert reports[0].startswith("the peer ")
    assert reports[0].endswith("; waiting for it to come back")
    assert ("stopped by its user" in reports[0]) is (reason is CloseReason.USER)


@pytest.mark.parametrize(
    "reason",
    sorted(set(CloseReason) - {CloseReason.DONE, CloseReason.USER, CloseReason.FAULT}),
    ids=lambda reason: reason.name,
)
@pytest.mark.parametrize("has_greeted", [True, False])
def test_a_peer_that_needs_a_person_is_not_waited_for(
    tmp_path: Path, reason: CloseReason, has_greeted: bool
) -> None:
    reports: list[str] = []
    reconnector = make_reconnector(
        tmp_path, peer_connections([([FRESH] * has_greeted, reason)]), reports=reports
    )
    call: Callable[[], object] = reconnector.ensure_connected
    if has_greeted:
        reconnector.ensure_connected()
        call = reconnector.receive
    with pytest.raises(PeerStoppedError, match="the peer has ended the session"):
        call()
    assert reports == []


def test_without_reconnecting_a_lost_peer_is_an_error(tmp_path: Path) -> None:
    reports: list[str] = []
    visits = peer_connections([([FRESH], CloseReason.USER)])
    reconnector = make_reconnector(tmp_path, visits, reconnects=False, reports=reports)
    reconnector.ensure_connected()
    with pytest.raises(PeerLostError, match="was stopped by its user"):
        reconnector.receive()
    assert reports == []


def test_after_finish_only_a_clean_close_ends_the_wait(tmp_path: Path) -> None:
    visits = peer_connections([([FRESH], CloseReason.USER), ([FRESH], CloseReason.DONE)])
    reports: list[str] = []
    reconnector = make_reconnector(tmp_path, visits, reports=reports)
    reconnector.finish(patience=1)
    reconnector.ensure_connected()
    with pytest.raises(PeerLostError, match="has closed the connection"):
        reconnector.receive()
    assert len(reports) == 1  # because its user stopped it


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"noise", CloseReason.PROTOCOL),
        (SessionGreeting(b"x" * 16, received=1, sent=1).to_bytes(), CloseReason.SETTINGS),
    ],
)
def test_a_peer_that_is_refused_receives_the_reason(
    tmp_path: Path, greeting: bytes, reason: CloseReason
) -> None:
    here, there = memory_pair(patience=1)
    there.send(greeting)
    with pytest.raises(PeerError):
        make_reconnector(tmp_path, [here]).ensure_connected()
    there.receive()  # our greeting
    with pytest.raises(PeerStoppedError) as error:
        there.receive()
    assert ("rejects what this side has sent" in str(error.value)) is (
        reason is CloseReason.PROTOCOL
    )


def test_a_side_that_has_only_greeted_adopts_a_new_name(tmp_path: Path) -> None:
    visits = peer_connections(
        [
            ([SessionGreeting(b"1" * 16, received=0, sent=0).to_bytes()], CloseReason.FAULT),
            (
                [SessionGreeting(b"2" * 16, received=0, sent=0).to_bytes(), b"hello"],
                CloseReason.DONE,
            ),
        ]
    )
    reconnector = make_reconnector(tmp_path, visits, names_session=False)
    reconnector.ensure_connected()
    assert (tmp_path / "session").read_bytes() == b"1" * 16
    assert reconnector.receive() == b"hello"
    assert (tmp_path / "session").read_bytes() == b"2" * 16


def test_a_side_in_the_middle_of_a_session_refuses_another_name(tmp_path: Path) -> None:
    with closing(FrameLog(tmp_path / "frames")) as log:
        log.append(RECEIVED, 0, b"hello")
        log.append(SENT, 0, b"hello")
    (tmp_path / "session").write_bytes(b"1" * 16)
    visits = peer_connections(
        [([SessionGreeting(b"2" * 16, received=0, sent=0).to_bytes()], CloseReason.DONE)]
    )
    with pytest.raises(PeerError, match="has started over"):
        make_reconnector(tmp_path, visits, names_session=False).ensure_connected()
    assert (tmp_path / "session").read_bytes() == b"1" * 16


def test_frames_that_a_peer_had_on_the_first_connection_are_accepted_on_the_next(
    tmp_path: Path,
) -> None:
    """Our log was lost in a power failure; then the connection is cut, too."""
    (tmp_path / "session").write_bytes(b"1" * 16)
    ahead, more = (SessionGreeting(b"1" * 16, received=n, sent=9).to_bytes() for n in (9, 10))
    visits = peer_connections(
        [([ahead], CloseReason.FAULT), ([ahead], CloseReason.FAULT), ([more], CloseReason.FAULT)]
    )
    reconnector = make_reconnector(tmp_path, visits)
    reconnector.ensure_connected()
    assert reconnector.peer.received == 9
    with pytest.raises(RemoteProtocolError, match="reports 10 frames, more than were sent"):
        reconnector.receive()


def test_a_peer_that_connects_and_disconnects_repeatedly_is_reported_rarely(tmp_path: Path) -> None:
    reports: list[str] = []
    reasons = [CloseReason.DONE, CloseReason.USER] * 60
    visits = [([FRESH], reason) for reason in reasons]
    visits += [([FRESH, b"a frame"], CloseReason.DONE), ([FRESH, b"another"], CloseReason.DONE)]
    reconnector = make_reconnector(tmp_path, peer_connections(visits), reports=reports)
    reconnector.ensure_connected()
    assert reconnector.receive() == b"a frame"
    assert [line.partition(";")[0].removeprefix("the peer ") for line in reports] == [
        "has closed the connection",
        "was stopped by its user (2 connections in a row without a frame)",
        "was stopped by its user (10 connections in a row without a frame)",
        "was stopped by its user (100 connections in a row without a frame)",
    ]
    reports.clear()
    assert reconnector.receive() == b"another"
    assert reports == ["the peer has closed the connection; waiting for it to come back"]
