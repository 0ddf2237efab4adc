"""Durable channel: every frame exactly once, in order, across connections and crashes.

Frames are logged before they are sent. A received frame is logged when the session continues from
it: when it sends, receives again or sets a checkpoint. A frame that the session refuses is
discarded, so that a peer that was fixed can send another. After a restart the session repeats its
steps from its last checkpoint: frames that were received before are read from the log, frames that
were sent before are compared with the transcript and not sent again.
"""

from collections.abc import Callable
from pathlib import Path

from vesper.errors import LocalProtocolError, PeerError, RemoteProtocolError, VesperError
from vesper.transport.channel import MAX_FRAME_BYTES
from vesper.transport.close_reason import CloseReason
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog
from vesper.transport.reconnect import Connect, Reconnector
from vesper.transport.stream import Waiting, ignore_waiting
from vesper.transport.transcript import Transcript

MAX_LAST_FRAME_BYTES = 1 << 10
"""Largest frame that a peer may still send once everything else is done."""


class DurableChannel:
    """Frames over one connection after another.

    Args:
        connect: opens a connection to the peer, and another one whenever it is lost.
        folder: holds the log, the transcript and the name of the session.
        names_session: whether this end names the session; the other end adopts the name.
        directions: names of the sent and the received direction in the transcript.
        reconnects: whether to reconnect when the connection is lost, or to stop.
        lost: receives the reason each time this end waits for another connection.
        waiting: receives the seconds for which connecting has failed.
    """

    def __init__(
        self,
        connect: Connect,
        folder: Path,
        *,
        names_session: bool,
        directions: tuple[str, str],
        reconnects: bool,
        lost: Callable[[str], None] = lambda why: None,
        waiting: Waiting = ignore_waiting,
    ) -> None:
        self._log = FrameLog(folder / "frames")
        self._transcript = Transcript(folder / "transcript.tsv")
        self._reconnector = Reconnector(
            connect,
            self._log,
            folder / "session",
            names_session=names_session,
            reconnects=reconnects,
            lost=lost,
            waiting=waiting,
        )
        self._directions = directions
        self._counts = [0, 0]
        self._pending: bytes | None = None

    @property
    def session(self) -> str:
        """Name of the session, equal at both ends once they have connected."""
        return self._reconnector.session.hex()

    @property
    def counts(self) -> tuple[int, int]:
        """Number of frames that the session has sent, and that it has received and accepted."""
        return self._counts[SENT], self._counts[RECEIVED]

    @property
    def bytes_sent(self) -> int:
        """Bytes of all frames that this end has sent in the session, over all of its processes."""
        return self._transcript.bytes_in(self._directions[SENT])

    def has_sent(self, frame: bytes) -> bool:
        """Whether this is the last frame that this end has sent, in this process or before."""
        return self._log.frame(SENT, self._log.count(SENT) - 1) == frame

    @property
    def has_checkpoints(self) -> bool:
        """Whether the session has set a checkpoint: earlier frames may be gone."""
        return self._log.has_checkpoints

    @property
    def is_in_sync(self) -> bool:
        """Whether each end had everything the other had sent when they last connected."""
        peer = self._reconnector.peer
        return (peer.received, peer.sent) == (self._log.count(SENT), self._log.count(RECEIVED))

    def connect_now(self) -> None:
        """Connect now, to learn which frames the peer has."""
        self._reconnector.ensure_connected()

    def refuse_stale_copy(self) -> None:
        """Refuse to repeat a step whose later frames the peer already has; connects to learn that.

        Raises:
            VesperError: this side was restored from an older copy.
        """
        self._reconnector.ensure_connected()
        sent, known = self._counts[SENT], self._reconnector.peer.received
        if sent < known:
            raise VesperError(
                f"the peer has {known} frames, this side is at {sent} and would draw noise that "
                f"was drawn before: this side was restored from an older copy. Restore the newest "
                f"state and ledger, or start a new run on both sides"
            )

    def rewind_to(self, counts: tuple[int, int]) -> None:
        """Continue from a checkpoint with these numbers of sent and received frames."""
        self._accept()  # the opening was received before the checkpoint
        self._counts = list(counts)

    def persist_received(self) -> None:
        """Log the last received frame, so that it is read from the log after a restart."""
        self._accept()

    def flush_received(self) -> None:
        """Log the last received frame; afterwards every frame so far is synced to disk."""
        self._accept()
        self._transcript.flush()
        self._log.sync()

    def mark_checkpoint(self) -> None:
        """Let the log drop old frames, after `flush_received`; the session can resume from here."""
        self._log.start_segment()

    def send(self, frame: bytes) -> None:
        """Log a frame, then send it; a frame that was logged before is not sent again.

        Raises:
            LocalProtocolError: a resumed session sends other bytes than before.
        """
        self._accept()
        number = self._counts[SENT]
        self._refuse_other(number, frame)
        is_new = number >= self._log.count(SENT)
        if is_new:
            self._log.append(SENT, number, frame)
        self._count(SENT, frame)
        if is_new and not self._reconnector.is_open:
            self._reconnector.ensure_connected()  # sends the frame too
        elif is_new and number >= self._reconnector.peer.received:  # else only our log had lost it
            self._reconnector.send(frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        """Read the next frame from the log, or wait for one of at most `limit` bytes."""
        self._accept()
        number = self._counts[RECEIVED]
        frame = self._log.frame(RECEIVED, number)
        if frame is None:
            self._reconnector.ensure_connected()
            self._refuse_deadlock(number)
            frame = self._reconnector.receive(limit)
        self._pending = frame
        return frame

    def finish(self, *, patience: float) -> None:
        """From now on wait at most `patience` seconds for a lost peer: all results were sent."""
        self._reconnector.finish(patience=patience)

    def linger(self, *, expects_last_frame: bool = False) -> None:
        """Stay connected until the peer has everything: it closes, or does not reconnect in time.

        A peer that had everything when it last connected is not waited for: it may be finished and
        wait for this end, whose log was lost in a power failure.

        Args:
            expects_last_frame: whether the peer sends one more frame then; with it this end stops
                waiting, or both ends would wait for each other.
        """
        if not expects_last_frame and self._reconnector.peer.received >= self._log.count(SENT):
            return
        has_received = False
        while not (expects_last_frame and has_received):
            try:
                self._reconnector.ensure_connected()
                self._reconnector.receive(MAX_LAST_FRAME_BYTES)
                has_received = True
            except PeerError:
                return  # lost, gone, or sending garbage: nothing more to wait for

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """Close connection and files; with `DONE`, log the last received frame first."""
        try:
            if why is CloseReason.DONE:
                self._accept()
        finally:
            self._reconnector.close(why)
            self._log.close()
            self._transcript.close()

    def _accept(self) -> None:
        """Log and count the last received frame, which the session has not refused."""
        frame, self._pending = self._pending, None
        if frame is None:
            return
        number = self._counts[RECEIVED]
        if number >= self._log.count(RECEIVED):
            self._log.append(RECEIVED, number, frame)
        self._count(RECEIVED, frame)

    def _count(self, direction: int, frame: bytes) -> None:
        """Count a frame and add it to the transcript."""
        self._transcript.record(sum(self._counts), self._directions[direction], frame)
        self._counts[direction] += 1

    def _refuse_other(self, number: int, frame: bytes) -> None:
        """Refuse to send other bytes after a restart than before."""
        if not self._transcript.matches(sum(self._counts), frame):
            raise LocalProtocolError(
                f"frame {number}: resuming from the last checkpoint has led to other bytes than "
                f"before; data, settings or versions have changed since. Nothing was sent; restore "
                f"them, or start a new run on both sides"
            )

    def _refuse_deadlock(self, number: int) -> None:
        """Refuse a peer that has more frames than this end can have sent: each waits for the other.

        A log that was lost in a power failure is rebuilt from what the peer has sent. If this end
        is then still behind what the peer has received, it will never catch up.
        """
        sent, peer = self._counts[SENT], self._reconnector.peer
        if sent < peer.received and number >= peer.sent:
            raise RemoteProtocolError(
                f"the peer reports {peer.received} frames, but with all that the peer has sent "
                f"this side reaches no more than {sent}: one of the two was restored from an older "
                f"copy. Restore the newest state, or start a new run on both sides"
            )
