"""Greeting: first frame of each end of a connection; both find out whether they fit together.

It names the session and counts the frames so far:

    greeting = MAGIC, session (16 bytes), frames received (u64), frames sent (u64)

| this end | the peer | then |
| --- | --- | --- |
| in a session | in the same session | continue |
| names the session, has received nothing | in none, or in another without any frame | continue |
| adopts the name, has no frames | in a session, has received nothing | adopt its name |
| anything else | | refused: one of the two has lost its state, or has started over |
"""

import struct
from dataclasses import dataclass

from vesper.errors import PeerError, RemoteProtocolError

MAGIC = b"VSPG2"
NO_SESSION_ID = bytes(16)
_GREETING = struct.Struct("<5s16sQQ")
MAX_GREETING_BYTES = 1 << 10
"""Enough for the greeting of another version, which is then refused as such."""


@dataclass(frozen=True)
class SessionGreeting:
    """Session and number of frames of one end, according to its log."""

    session: bytes
    received: int
    sent: int

    def to_bytes(self) -> bytes:
        """Encode the greeting."""
        return _GREETING.pack(MAGIC, self.session, self.received, self.sent)

    @property
    def is_blank(self) -> bool:
        """Whether nothing but greetings was exchanged."""
        return self.received == 0 and self.sent == 0


def read_greeting(frame: bytes) -> SessionGreeting:
    """Decode the greeting of the peer.

    Raises:
        RemoteProtocolError: the frame is not a greeting, or contradicts itself.
    """
    if len(frame) != _GREETING.size or not frame.startswith(MAGIC):
        raise RemoteProtocolError(
            "the peer's greeting is not that of this version of vesper; install the same on both "
            "sides"
        )
    greeting = SessionGreeting(*_GREETING.unpack(frame)[1:])
    if greeting.session == NO_SESSION_ID and not greeting.is_blank:
        raise RemoteProtocolError("the peer reports frames but is in no session")
    return greeting


def agreed_session(own: SessionGreeting, peer: SessionGreeting, *, names_session: bool) -> bytes:
    """Determine the session that both ends are in from now on.

    Args:
        own: greeting of this end.
        peer: greeting of the other end.
        names_session: whether this end names the session; the other end adopts the name.

    Raises:
        PeerError: they cannot be in the same session; the message says why.
    """
    if own.session == peer.session != NO_SESSION_ID:
        return own.session
    if names_session and peer.is_blank:
        if own.received:
            raise PeerError(
                f"the peer has lost its state of the unfinished session {_short(own)}; restore it "
                f"there, or start a new run on both sides, with new state folders"
            )
        return own.session
    if not names_session and own.is_blank and peer.session != NO_SESSION_ID:
        if peer.received:
            raise PeerError(
                f"the peer is in the middle of session {_short(peer)}, of which this side has no "
                f"state; restore it, or start a new run on both sides, with new state folders"
            )
        return peer.session
    if own.session == peer.session:
        raise PeerError("neither side starts a session; expected one of them to be the data party")
    raise PeerError(
        f"the peer is in session {_short(peer)}, this side in {_short(own)}: one of the two has "
        f"started over. Start on both sides, with a new state folder where there is an older run"
    )


def _short(greeting: SessionGreeting) -> str:
    return greeting.session.hex()[:8]
