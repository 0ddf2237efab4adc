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
from vesper.files import write_whole
from vesper.transport.channel import Channel
from vesper.transport.close_reason import Parting, parting_of
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog

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


def read_name(path: Path) -> bytes:
    """Read the name; `NO_SESSION` when there is none.

    Raises:
        VesperError: the file is something else.
    """
    try:
        name = path.read_bytes() if path.exists() else NO_SESSION
    except OSError as error:
        raise VesperError(f"{path}: cannot be read ({error.strerror}); restore it") from None
    if len(name) != len(NO_SESSION):
        raise VesperError(f"{path}: is damaged; restore it, or begin a new run")
    return name


def write_name(path: Path, name: bytes) -> None:
    """Put a name in place of what was there.

    Raises:
        VesperError: it cannot be written.
    """
    try:
        write_whole(path, name)
    except OSError as error:
        raise VesperError(f"{path}: cannot be written ({error.strerror})") from None


Connect = Callable[[float | None], Channel]
"""Makes a connection, trying for ever or at most so many seconds."""


class Meetings:
    """Connections of one session.

    Args:
        connect: makes a connection to the peer, and another when it was lost.
        log: what has crossed.
        name: file that keeps the session's name.
        begins: whether this end names the session; the other takes the name over.
        waits: whether to connect again when the connection is lost, or to stop.
        lost: is told why this end waits for another connection.
    """

    def __init__(
        self,
        connect: Connect,
        log: FrameLog,
        name: Path,
        *,
        begins: bool,
        waits: bool,
        lost: Callable[[str], None],
    ) -> None:
        self._connect, self._log, self._name = connect, log, name
        self._begins, self._waits, self._lost = begins, waits, lost
        self.session = read_name(name)
        if begins and self.session == NO_SESSION:
            self._keep(os.urandom(len(NO_SESSION)))
        self.peer = Greeting(NO_SESSION, received=0, sent=0)
        """How far the peer was at the last meeting."""
        self._limit: float | None = None
        self._has_met = False
        self._in_vain, self._told = 0, set[str]()  # connections since a frame came, and what of
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
            self._meet_again(error)

    def receive(self) -> bytes:
        """Wait for the next frame, over as many connections as it takes."""
        while True:
            assert self._channel is not None
            try:
                frame = self._channel.receive()
            except PeerLostError as error:
                self._meet_again(error)
                continue
            self._in_vain, self._told = 0, set()
            return frame

    def finish(self, *, patience: float) -> None:
        """Wait from now on at most so long for a lost peer; one that says farewell is let go."""
        self._limit = patience

    def close(self, why: Parting) -> None:
        """End the connection, if one stands."""
        if self._channel is not None:
            self._channel.close(why)
            self._channel = None

    def meet(self) -> None:
        """Connect, greet, and send what the peer has not got; begin again when that is cut off."""
        while self._channel is None:
            channel = self._connect(self._limit)
            try:
                own = Greeting(self.session, self._log.count(RECEIVED), self._log.count(SENT))
                channel.send(own.packed())
                self.peer = self._greeted(own, read_greeting(channel.receive()))
                self._send_again(channel, range(self.peer.received, own.sent))
            except PeerLostError as error:
                self._wait_after(error)
                continue
            except BaseException as error:
                channel.close(parting_of(error))
                raise
            self._channel, self._has_met = channel, True

    def _meet_again(self, error: PeerLostError) -> None:
        self._channel = None
        if self._limit is not None and error.is_farewell:
            raise error
        self._wait_after(error)
        self.meet()

    def _wait_after(self, error: PeerLostError) -> None:
        if not self._waits:
            raise error
        self._in_vain += 1
        is_round = 10 ** round(math.log10(self._in_vain)) == self._in_vain
        if str(error) in self._told and not is_round:
            return
        self._told.add(str(error))
        often = f" ({self._in_vain} times now without a word)" if self._in_vain > 1 else ""
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

    def _greeted(self, own: Greeting, peer: Greeting) -> Greeting:
        """Check the peer's greeting, and keep the name of the session if it is new here."""
        session = agreed_session(own, peer, begins=self._begins)
        # Before the first meeting after a start, our log may have been lost with the power.
        if self._has_met and peer.received > max(own.sent, self.peer.received):
            raise RemoteProtocolError(
                f"the peer says it has {peer.received} frames; so many were not sent"
            )
        if session != self.session:
            self._keep(session)
        return peer

    def _keep(self, session: bytes) -> None:
        write_name(self._name, session)
        self.session = session
