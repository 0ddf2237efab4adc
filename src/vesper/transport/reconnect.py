"""One connection after the other to the same peer: at each, both say how far they are.

What the log has and the peer has not got is sent first. A connection that is lost is replaced, or
ends it, as told; a peer that leaves for a reason which waiting does not mend ends it at once. Of a
peer that comes and goes without a word in between, each reason is told once, and then the 10th,
100th, .. time.

The first word on every connection: which session, and how far this end has come in it.

    greeting = MAGIC, session (16 bytes), frames received (u64), frames sent (u64)

| this end | the peer | then |
| --- | --- | --- |
| in a session | in the same | go on |
| begins it, has received nothing | in none, or in another of which nothing has crossed | go on |
| takes it over, nothing has crossed | in a session that has received nothing | take its name |
| anything else | | refused: one of the two has lost its state, or has begun anew |

The name of a session in a file: sixteen random bytes, whole or not there.
"""

import math
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vesper.errors import PeerError, PeerLostError, RemoteProtocolError, VesperError
from vesper.files import replace_file
from vesper.transport.channel import Channel
from vesper.transport.close_reason import CloseReason, close_reason_for
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog

MAGIC = b"VSPG2"
NO_SESSION_ID = bytes(16)
_GREETING = struct.Struct("<5s16sQQ")


@dataclass(frozen=True)
class SessionGreeting:
    """How far an end is, as its log knows."""

    session: bytes
    received: int
    sent: int

    def to_bytes(self) -> bytes:
        """As it crosses."""
        return _GREETING.pack(MAGIC, self.session, self.received, self.sent)

    @property
    def is_blank(self) -> bool:
        """Whether nothing but greetings has crossed."""
        return self.received == 0 and self.sent == 0


def read_greeting(frame: bytes) -> SessionGreeting:
    """Read the peer's.

    Raises:
        RemoteProtocolError: it is none, or contradicts itself.
    """
    if len(frame) != _GREETING.size or not frame.startswith(MAGIC):
        raise RemoteProtocolError("the peer's greeting is none of this version of vesper")
    greeting = SessionGreeting(*_GREETING.unpack(frame)[1:])
    if greeting.session == NO_SESSION_ID and not greeting.is_blank:
        raise RemoteProtocolError("the peer says it has frames, and that it is in no session")
    return greeting


def agreed_session(own: SessionGreeting, peer: SessionGreeting, *, names_session: bool) -> bytes:
    """The session that both ends are in from now on.

    Args:
        own: what this end says.
        peer: what the other says.
        names_session: whether this end names the session; the other takes the name over.

    Raises:
        PeerError: they cannot be in one; the message says why.
    """
    if own.session == peer.session != NO_SESSION_ID:
        return own.session
    if names_session and peer.is_blank:
        if own.received:
            raise PeerError(
                f"the peer has lost its state of session {_short(own)}, which is in the middle; "
                f"restore it there, or begin a new run on both sides, with new state folders"
            )
        return own.session
    if not names_session and own.is_blank and peer.session != NO_SESSION_ID:
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


def _short(greeting: SessionGreeting) -> str:
    return greeting.session.hex()[:8]


def read_session_name(path: Path) -> bytes:
    """Read the name; `NO_SESSION_ID` when there is none.

    Raises:
        VesperError: the file is something else.
    """
    try:
        name = path.read_bytes() if path.exists() else NO_SESSION_ID
    except OSError as error:
        raise VesperError(f"{path}: cannot be read ({error.strerror}); restore it") from None
    if len(name) != len(NO_SESSION_ID):
        raise VesperError(f"{path}: is damaged; restore it, or begin a new run")
    return name


def write_session_name(path: Path, name: bytes) -> None:
    """Put a name in place of what was there.

    Raises:
        VesperError: it cannot be written.
    """
    try:
        replace_file(path, name)
    except OSError as error:
        raise VesperError(f"{path}: cannot be written ({error.strerror})") from None


Connect = Callable[[float | None], Channel]
"""Makes a connection, trying for ever or at most so many seconds."""


class Reconnector:
    """Connections of one session.

    Args:
        connect: makes a connection to the peer, and another when it was lost.
        log: what has crossed.
        name: file that keeps the session's name.
        names_session: whether this end names the session; the other takes the name over.
        reconnects: whether to connect again when the connection is lost, or to stop.
        lost: is told why this end waits for another connection.
    """

    def __init__(
        self,
        connect: Connect,
        log: FrameLog,
        name: Path,
        *,
        names_session: bool,
        reconnects: bool,
        lost: Callable[[str], None],
    ) -> None:
        self._connect, self._log, self._name = connect, log, name
        self._names_session, self._reconnects, self._lost = names_session, reconnects, lost
        self.session = read_session_name(name)
        if names_session and self.session == NO_SESSION_ID:
            self._store_session(os.urandom(len(NO_SESSION_ID)))
        self.peer = SessionGreeting(NO_SESSION_ID, received=0, sent=0)
        """How far the peer was at the last meeting."""
        self._limit: float | None = None
        self._has_connected = False
        self._failed_attempts, self._reported = (
            0,
            set[str](),
        )  # connections since a frame came, and what of
        self._channel: Channel | None = None

    @property
    def is_open(self) -> bool:
        """Whether a connection stands, as far as is known."""
        return self._channel is not None

    def send(self, frame: bytes) -> None:
        """Send a frame that is in the log; a new connection would send it, too."""
        assert self._channel is not None
        try:
            self._channel.send(frame)
        except PeerLostError as error:
            self._reconnect(error)

    def receive(self) -> bytes:
        """Wait for the next frame, over as many connections as it takes."""
        while True:
            assert self._channel is not None
            try:
                frame = self._channel.receive()
            except PeerLostError as error:
                self._reconnect(error)
                continue
            self._failed_attempts, self._reported = 0, set()
            return frame

    def finish(self, *, patience: float) -> None:
        """Wait from now on at most so long for a lost peer; one that says farewell is let go."""
        self._limit = patience

    def close(self, why: CloseReason) -> None:
        """End the connection, if one stands."""
        if self._channel is not None:
            self._channel.close(why)
            self._channel = None

    def ensure_connected(self) -> None:
        """Connect, greet, and send what the peer has not got; begin again when that is cut off."""
        while self._channel is None:
            channel = self._connect(self._limit)
            try:
                own = SessionGreeting(
                    self.session, self._log.count(RECEIVED), self._log.count(SENT)
                )
                channel.send(own.to_bytes())
                self.peer = self._checked_greeting(own, read_greeting(channel.receive()))
                self._send_again(channel, range(self.peer.received, own.sent))
            except PeerLostError as error:
                self._report_and_wait(error)
                continue
            except BaseException as error:
                channel.close(close_reason_for(error))
                raise
            self._channel, self._has_connected = channel, True

    def _reconnect(self, error: PeerLostError) -> None:
        self._channel = None
        if self._limit is not None and error.is_clean_close:
            raise error
        self._report_and_wait(error)
        self.ensure_connected()

    def _report_and_wait(self, error: PeerLostError) -> None:
        if not self._reconnects:
            raise error
        self._failed_attempts += 1
        is_round = 10 ** round(math.log10(self._failed_attempts)) == self._failed_attempts
        if str(error) in self._reported and not is_round:
            return
        self._reported.add(str(error))
        often = (
            f" ({self._failed_attempts} times now without a word)"
            if self._failed_attempts > 1
            else ""
        )
        self._lost(f"{error}{often}; waiting for it to come back")

    def _send_again(self, channel: Channel, numbers: range) -> None:
        for number in numbers:
            frame = self._log.frame(SENT, number)
            if frame is None:
                raise PeerError(
                    f"the peer lacks frame {number}, which is no longer kept here: it has lost its "
                    f"state folder; begin a new run on both sides"
                )
            channel.send(frame)

    def _checked_greeting(self, own: SessionGreeting, peer: SessionGreeting) -> SessionGreeting:
        """Check the peer's greeting, and keep the name of the session if it is new here."""
        session = agreed_session(own, peer, names_session=self._names_session)
        # Before the first meeting after a start, our log may have been lost with the power.
        if self._has_connected and peer.received > max(own.sent, self.peer.received):
            raise RemoteProtocolError(
                f"the peer says it has {peer.received} frames; so many were not sent"
            )
        if session != self.session:
            self._store_session(session)
        return peer

    def _store_session(self, session: bytes) -> None:
        write_session_name(self._name, session)
        self.session = session
