"""The first word on every connection: which session, and how far this end has come in it.

    greeting = MAGIC, session (16 bytes), frames received (u64), frames sent (u64)

| this end | the peer | then |
| --- | --- | --- |
| in a session | in the same | go on |
| begins it, has received nothing | in none, or in another of which nothing has crossed | go on |
| takes it over, nothing has crossed | in a session that has received nothing | take its name |
| anything else | | refused: one of the two has lost its state, or has begun anew |
"""

import struct
from dataclasses import dataclass

from vesper.errors import PeerError, RemoteProtocolError

MAGIC = b"VSPG2"
NO_SESSION = bytes(16)
_GREETING = struct.Struct("<5s16sQQ")


@dataclass(frozen=True)
class Greeting:
    """How far an end is, as its log knows."""

    session: bytes
    received: int
    sent: int

    def packed(self) -> bytes:
        """As it crosses."""
        return _GREETING.pack(MAGIC, self.session, self.received, self.sent)

    @property
    def is_blank(self) -> bool:
        """Whether nothing but greetings has crossed."""
        return self.received == 0 and self.sent == 0


def read_greeting(frame: bytes) -> Greeting:
    """Read the peer's.

    Raises:
        RemoteProtocolError: it is none, or contradicts itself.
    """
    if len(frame) != _GREETING.size or not frame.startswith(MAGIC):
        raise RemoteProtocolError("the peer's greeting is none of this version of vesper")
    greeting = Greeting(*_GREETING.unpack(frame)[1:])
    if greeting.session == NO_SESSION and not greeting.is_blank:
        raise RemoteProtocolError("the peer says it has frames, and that it is in no session")
    return greeting


def agreed_session(own: Greeting, peer: Greeting, *, begins: bool) -> bytes:
    """The session that both ends are in from now on.

    Args:
        own: what this end says.
        peer: what the other says.
        begins: whether this end names the session; the other takes the name over.

    Raises:
        PeerError: they cannot be in one; the message says why.
    """
    if own.session == peer.session != NO_SESSION:
        return own.session
    if begins and peer.is_blank:
        if own.received:
            raise PeerError(
                f"the peer has lost its state of session {_short(own)}, which is in the middle; "
                f"restore it there, or begin a new run on both sides, with new state folders"
            )
        return own.session
    if not begins and own.is_blank and peer.session != NO_SESSION:
        if peer.received:
            raise PeerError(
                f"the peer is in the middle of session {_short(peer)}, of which this side knows "
                f"nothing; restore its state, or begin a new run on both sides, with new state "
                f"folders"
            )
        return peer.session
    if own.session == peer.session:
        raise PeerError("neither side begins a session; is one the data party?")
    raise PeerError(
        f"the peer is in session {_short(peer)}, this side in {_short(own)}: one of the two has "
        f"begun anew. Begin on both sides, with a new state folder where a run has begun"
    )


def _short(greeting: Greeting) -> str:
    return greeting.session.hex()[:8]
