"""Reconnector: one connection after another to the same peer, each resumed where both ends are.

Frames that are in the log and that the peer lacks are sent first. A lost connection is replaced, or
ends the session, as configured; a peer that closes for a reason that waiting does not fix ends it
at once. Whatever prevents the first connection of a process (a failed handshake, a certificate that
has expired) ends it, too. Later the same only delays the next connection: it counts as a lost one.
For a peer that repeatedly connects and disconnects without a frame in between, each reason is
reported once, and then the 10th, 100th, ... time.

Every connection starts with a greeting (`session_greeting`), which names the session and counts the
frames so far. The name of a session is sixteen random bytes in a file that is written atomically.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from vesper.errors import (
    InputError,
    PeerError,
    PeerLostError,
    RemoteProtocolError,
    VesperError,
)
from vesper.files import replace_file
from vesper.transport.channel import MAX_FRAME_BYTES, Channel
from vesper.transport.close_reason import CloseReason, close_reason_for
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog
from vesper.transport.session_greeting import (
    MAX_GREETING_BYTES,
    NO_SESSION_ID,
    SessionGreeting,
    agreed_session,
    read_greeting,
)
from vesper.transport.stream import Waiting, ignore_waiting

RETRY_SECONDS = 0.5
"""Seconds between two attempts to connect."""


def read_session_name(path: Path) -> bytes:
    """Read the name of a session; `NO_SESSION_ID` if there is no file.

    Raises:
        VesperError: the file cannot be read, or is damaged.
    """
    try:
        name = path.read_bytes() if path.exists() else NO_SESSION_ID
    except OSError as error:
        raise VesperError(f"{path}: cannot be read ({error.strerror}); restore it") from None
    if len(name) != len(NO_SESSION_ID):
        raise VesperError(f"{path}: is damaged; restore it, or start a new run")
    return name


def write_session_name(path: Path, name: bytes) -> None:
    """Write the name of a session, replacing an earlier one.

    Raises:
        VesperError: it cannot be written.
    """
    try:
        replace_file(path, name)
    except OSError as error:
        raise VesperError(f"{path}: cannot be written ({error.strerror})") from None


Connect = Callable[[float | None], Channel]
"""Opens a connection, trying forever or at most this many seconds."""


class Reconnector:
    """Connections of one session.

    Args:
        connect: opens a connection to the peer, and another one whenever it is lost.
        log: frames sent and received.
        name: file with the name of the session.
        names_session: whether this end names the session; the other end adopts the name.
        reconnects: whether to reconnect when the connection is lost, or to stop.
        lost: receives the reason why this end waits for another connection.
        waiting: receives the seconds for which connecting has failed since the connection was lost;
            raises `PeerLostError` to give up.
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
        waiting: Waiting = ignore_waiting,
    ) -> None:
        self._connect, self._log, self._name = connect, log, name
        self._names_session, self._reconnects, self._lost = names_session, reconnects, lost
        self._waiting = waiting
        self.session = read_session_name(name)
        if names_session and self.session == NO_SESSION_ID:
            self._store_session(os.urandom(len(NO_SESSION_ID)))
        self.peer = SessionGreeting(NO_SESSION_ID, received=0, sent=0)
        """Greeting of the peer on the last connection."""
        self._limit: float | None = None
        self._has_connected = False
        self._failed_attempts = 0  # connections since the last frame was received
        self._reported = set[str]()  # reasons reported in that time
        self._channel: Channel | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, as far as this end knows."""
        return self._channel is not None

    def send(self, frame: bytes) -> None:
        """Send a frame that is in the log; if the connection is lost, the next one sends it."""
        assert self._channel is not None
        try:
            self._channel.send(frame)
        except PeerLostError as error:
            self._reconnect(error)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        """Wait for the next frame, over as many connections as it takes."""
        while True:
            assert self._channel is not None
            try:
                frame = self._channel.receive(limit)
            except PeerLostError as error:
                self._reconnect(error)
                continue
            self._failed_attempts, self._reported = 0, set()
            return frame

    def finish(self, *, patience: float) -> None:
        """From now on wait at most `patience` seconds for a lost peer; stop after a clean close."""
        self._limit = patience

    def close(self, why: CloseReason) -> None:
        """Close the connection, if there is one."""
        if self._channel is not None:
            self._channel.close(why)
            self._channel = None

    def ensure_connected(self) -> None:
        """Connect, exchange greetings, and send what the peer lacks; retry if it breaks."""
        while self._channel is None:
            channel = self._next_connection()
            try:
                own = SessionGreeting(
                    self.session, self._log.count(RECEIVED), self._log.count(SENT)
                )
                channel.send(own.to_bytes())
                self.peer = self._checked_greeting(
                    own, read_greeting(channel.receive(MAX_GREETING_BYTES))
                )
                self._send_again(channel, range(self.peer.received, own.sent))
            except PeerLostError as error:
                self._report_and_wait(error)
                continue
            except BaseException as error:
                channel.close(close_reason_for(error))
                raise
            self._channel, self._has_connected = channel, True

    def _next_connection(self) -> Channel:
        """Open a connection; after the first one, no failed attempt is final."""
        started = monotonic()
        while True:
            try:
                return self._connect(self._limit)
            except PeerLostError:
                raise
            except (PeerError, InputError) as error:
                if not self._has_connected:
                    raise
                lost, waited = PeerLostError(str(error)), monotonic() - started
                if self._limit is not None and waited > self._limit:
                    raise lost from None
                self._report_and_wait(lost)
                self._waiting(waited)
                sleep(RETRY_SECONDS)

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
        attempts = self._failed_attempts
        repeated = f" ({attempts} connections in a row without a frame)" if attempts > 1 else ""
        self._lost(f"{error}{repeated}; waiting for it to come back")

    def _send_again(self, channel: Channel, numbers: range) -> None:
        for number in numbers:
            frame = self._log.frame(SENT, number)
            if frame is None:
                raise PeerError(
                    f"the peer lacks frame {number}, which is no longer stored here: it has lost "
                    f"its state folder; start a new run on both sides"
                )
            channel.send(frame)

    def _checked_greeting(self, own: SessionGreeting, peer: SessionGreeting) -> SessionGreeting:
        """Check the peer's greeting, and store the name of the session if it is new."""
        session = agreed_session(own, peer, names_session=self._names_session)
        # On the first connection after a start, our log may have been lost in a power failure.
        if self._has_connected and peer.received > max(own.sent, self.peer.received):
            raise RemoteProtocolError(
                f"the peer reports {peer.received} frames, more than were sent"
            )
        if session != self.session:
            self._store_session(session)
        return peer

    def _store_session(self, session: bytes) -> None:
        write_session_name(self._name, session)
        self.session = session
