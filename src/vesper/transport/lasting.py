"""A channel that outlives connections and processes: every frame exactly once, in order.

    greeting = MAGIC, session (16 bytes), frames received so far (u64)

Frames are logged before they are sent and before they are acted upon. After a connection was lost
both ends greet again, and each sends from its log what the other has not got. After a restart the
session goes through its steps again from its last mark: frames that came before are read from the
log, frames that were sent before are compared with the receipts and not sent again.
"""

import os
import struct
from collections.abc import Callable
from pathlib import Path

from vesper.errors import (
    LocalProtocolError,
    PeerError,
    PeerLostError,
    RemoteProtocolError,
    VesperError,
)
from vesper.transport.channel import Channel
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog
from vesper.transport.receipts import Receipts

MAGIC = b"VSPG1"
_GREETING = struct.Struct("<5s16sQ")
NO_SESSION = bytes(16)

Connect = Callable[[float | None], Channel]
"""Makes a connection, trying for ever or at most so many seconds."""


class LastingChannel:
    """Frames over one connection after the other.

    Args:
        connect: makes a connection to the peer, and another when it was lost.
        folder: keeps log, receipts and the session's name.
        begins: whether this end names the session; the other takes the name over.
        directions: how receipts call what is sent and what is received.
        waits: whether to connect again when the connection is lost, or to stop.
        lost: is told each time why it was lost.
    """

    def __init__(
        self,
        connect: Connect,
        folder: Path,
        *,
        begins: bool,
        directions: tuple[str, str],
        waits: bool,
        lost: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._connect, self._waits, self._lost = connect, waits, lost
        self._log = FrameLog(folder / "frames")
        self._receipts = Receipts(folder / "receipts.tsv")
        self._directions = directions
        self._name = folder / "session"
        self._session = self._name.read_bytes() if self._name.exists() else NO_SESSION
        if len(self._session) != len(NO_SESSION):
            raise VesperError(f"{self._name}: is damaged; restore it, or begin a new run")
        if begins and self._session == NO_SESSION:
            self._keep_name(os.urandom(16))
        self._counts = [0, 0]
        self._peer_has = 0
        self._limit: float | None = None
        self._has_met = False
        self._channel: Channel | None = None

    @property
    def session(self) -> str:
        """Name of the session, the same at both ends once they have met."""
        return self._session.hex()

    @property
    def counts(self) -> tuple[int, int]:
        """Frames sent and received by the session so far."""
        return self._counts[SENT], self._counts[RECEIVED]

    @property
    def has_marks(self) -> bool:
        """Whether the session was marked before: frames from before may be gone."""
        return self._log.has_marks

    def meet(self) -> None:
        """Connect now, and find out what the peer has."""
        if self._channel is None:
            self._meet()

    def refuse_if_behind(self) -> None:
        """Refuse what must have happened before: the peer has frames that come after it.

        Raises:
            VesperError: this side was put back from an older copy.
        """
        if self._counts[SENT] < self._peer_has:
            raise VesperError(
                f"the peer has {self._peer_has} frames, this side is at {self._counts[SENT]} and "
                f"would draw noise that was drawn before: it was put back from an older copy. "
                f"Restore the newest state and ledger, or begin a new run on both sides"
            )

    def go_back_to(self, counts: tuple[int, int]) -> None:
        """Begin from a mark: the session has sent and received so many frames."""
        self._counts = list(counts)

    def mark(self) -> None:
        """Tell the log that the session can begin from here."""
        self._receipts.settle()
        self._log.mark()

    def send(self, frame: bytes) -> None:
        """Log, then send; a frame that was logged before is not sent again from here."""
        number = self._counts[SENT]
        self._refuse_other(number, frame)
        is_new = number >= self._log.count(SENT)
        if is_new:
            self._log.append(SENT, number, frame)
        self._count(SENT, frame)
        if is_new and self._channel is None:
            self._meet()  # sends it too
        elif is_new and number >= self._peer_has:  # else our log was lost with the power
            self._send(frame)

    def receive(self) -> bytes:
        """Read the next frame from the log, or wait for it and log it."""
        number = self._counts[RECEIVED]
        frame = self._log.frame(RECEIVED, number)
        if frame is None:
            frame = self._arrival()
            self._log.append(RECEIVED, number, frame)
        self._count(RECEIVED, frame)
        return frame

    def finish(self, *, patience: float) -> None:
        """Wait from now on at most so long for a lost peer: all that matters has crossed."""
        self._limit = patience

    def linger(self) -> None:
        """Stay until the peer has everything: it closes, or does not come back in time."""
        while True:
            try:
                self._arrival()
            except PeerLostError:
                return

    def close(self) -> None:
        """End the connection and let go of the files."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self._log.close()
        self._receipts.close()

    def _arrival(self) -> bytes:
        while True:
            if self._channel is None:
                self._meet()
            assert self._channel is not None
            try:
                return self._channel.receive()
            except PeerLostError as error:
                self._meet_again(error)

    def _send(self, frame: bytes) -> None:
        assert self._channel is not None
        try:
            self._channel.send(frame)
        except PeerLostError as error:
            self._meet_again(error)

    def _count(self, direction: int, frame: bytes) -> None:
        """Count a frame and add it to the receipts."""
        self._receipts.note(sum(self._counts), self._directions[direction], frame)
        self._counts[direction] += 1

    def _refuse_other(self, number: int, frame: bytes) -> None:
        """Refuse to send, after a restart, other bytes than before."""
        if not self._receipts.agrees(sum(self._counts), frame):
            raise LocalProtocolError(
                f"frame {number}: going on from the last mark has led to other bytes than before; "
                f"data, settings or versions have changed since. Nothing was sent"
            )

    def _meet_again(self, error: PeerLostError) -> None:
        self._channel = None
        if self._limit is not None and error.is_farewell:
            raise error
        self._lost(str(error))
        if not self._waits:
            raise error
        self._meet()

    def _meet(self) -> None:
        """Connect, greet, and send what the peer has not got; begin again when that is cut off."""
        while True:
            channel = self._connect(self._limit)
            try:
                channel.send(_GREETING.pack(MAGIC, self._session, self._log.count(RECEIVED)))
                self._peer_has = self._greeted(channel.receive())
                for number in range(self._peer_has, self._log.count(SENT)):
                    frame = self._log.frame(SENT, number)
                    if frame is None:
                        raise PeerError(
                            f"the peer lacks frame {number}, which is no longer kept here: it has "
                            f"lost its state folder; begin a new run on both sides"
                        )
                    channel.send(frame)
            except PeerLostError as error:
                self._lost(str(error))
                if not self._waits:
                    raise
                continue
            except BaseException:
                channel.close()
                raise
            self._channel, self._has_met = channel, True
            return

    def _greeted(self, frame: bytes) -> int:
        """Check the peer's greeting; give how many frames it has."""
        if len(frame) != _GREETING.size or not frame.startswith(MAGIC):
            raise RemoteProtocolError("the peer's greeting is none of this version of vesper")
        _, session, known = _GREETING.unpack(frame)
        if self._session == NO_SESSION and session != NO_SESSION:
            self._keep_name(session)
        elif session not in (self._session, NO_SESSION):
            raise PeerError(
                f"the peer is in session {session.hex()[:8]}, this side in {self.session[:8]}: one "
                f"of the two has begun anew; begin a new run on both sides, with new state folders"
            )
        elif session == NO_SESSION and self._log.count(RECEIVED) > 0:
            raise PeerError(
                f"the peer has lost its state of session {self.session[:8]}; begin a new run on "
                f"both sides, with new state folders"
            )
        if known > self._log.count(SENT) and self._has_met:
            # Before the first meeting after a start, our log may have been lost with the power.
            raise RemoteProtocolError(f"the peer says it has {known} frames; so many were not sent")
        return int(known)

    def _keep_name(self, session: bytes) -> None:
        self._session = session
        partial = self._name.with_suffix(".partial")
        try:
            with partial.open("wb") as file:
                file.write(session)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._name)
        except OSError as error:
            raise VesperError(f"{self._name}: cannot be written ({error.strerror})") from None
