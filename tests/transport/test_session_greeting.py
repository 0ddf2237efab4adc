"""Which ends can continue a session: every row of the table, and contradictory greetings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import PeerError, RemoteProtocolError
from vesper.transport.session_greeting import (
    MAGIC,
    NO_SESSION_ID,
    SessionGreeting,
    agreed_session,
    read_greeting,
)

ONE, OTHER = b"1" * 16, b"2" * 16


def at(session: bytes, received: int = 0, sent: int = 0) -> SessionGreeting:
    return SessionGreeting(session, received=received, sent=sent)


@given(
    st.binary(min_size=16, max_size=16).filter(lambda name: name != NO_SESSION_ID),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
)
def test_round_trip(session: bytes, received: int, sent: int) -> None:
    greeting = at(session, received, sent)
    assert read_greeting(greeting.to_bytes()) == greeting


@given(st.binary(max_size=60))
def test_random_bytes_are_refused(noise: bytes) -> None:
    for frame in (noise, MAGIC + noise):
        try:
            read_greeting(frame)
        except RemoteProtocolError:
            continue
        assert len(frame) == len(at(ONE).to_bytes())


@pytest.mark.parametrize("counts", [(1, 0), (0, 1), (9, 9)])
def test_frames_of_no_session_are_refused(counts: tuple[int, int]) -> None:
    with pytest.raises(RemoteProtocolError, match="is in no session"):
        read_greeting(at(NO_SESSION_ID, *counts).to_bytes())


@pytest.mark.parametrize(
    ("own", "peer", "names_session", "session"),
    [
        (at(ONE, 3, 3), at(ONE, 3, 4), True, ONE),
        (at(ONE, 3, 3), at(ONE), False, ONE),  # its log was lost in a power failure
        (at(ONE), at(NO_SESSION_ID), True, ONE),
        (at(ONE, 0, 1), at(NO_SESSION_ID), True, ONE),  # it was lost before its greeting
        (at(ONE, 0, 1), at(OTHER), True, ONE),  # it has greeted, and we have started over since
        (at(NO_SESSION_ID), at(ONE, 0, 1), False, ONE),
        (at(OTHER), at(ONE), False, ONE),
        (at(OTHER), at(ONE, 0, 1), False, ONE),
    ],
)
def test_the_session_continues(
    own: SessionGreeting, peer: SessionGreeting, names_session: bool, session: bytes
) -> None:
    assert agreed_session(own, peer, names_session=names_session) == session


@pytest.mark.parametrize(
    ("own", "peer", "names_session", "why"),
    [
        (at(ONE, 2, 1), at(NO_SESSION_ID), True, "has lost its state"),
        (at(ONE, 2, 1), at(OTHER), True, "has lost its state"),
        (at(ONE, 0, 1), at(OTHER, 1, 2), True, "has started over"),
        (at(OTHER, 1, 2), at(ONE), False, "has started over"),
        (at(OTHER, 5, 6), at(ONE, 0, 1), False, "has started over"),
        (at(NO_SESSION_ID), at(ONE, 2, 1), False, "in the middle of session"),
        (at(OTHER), at(ONE, 2, 1), False, "in the middle of session"),
        (at(NO_SESSION_ID), at(NO_SESSION_ID), False, "neither side starts"),
        (at(ONE), at(OTHER, 0, 1), True, "has started over"),  # two data parties
    ],
)
def test_the_session_is_refused(
    own: SessionGreeting, peer: SessionGreeting, names_session: bool, why: str
) -> None:
    with pytest.raises(PeerError, match=why):
        agreed_session(own, peer, names_session=names_session)
