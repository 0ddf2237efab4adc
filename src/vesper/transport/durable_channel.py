"""A channel that outlives connections and processes: every frame exactly once, in order.

Frames are logged before they are sent. A frame that came is logged when the session goes on from
it: sends, receives again, or marks. One that the session refuses is forgotten, so that a peer that
was put right can send another. After a restart the session goes through its steps again from its
last mark: frames that came before are read from the log, frames that were sent before are compared
with the receipts and not sent again.
"""

from collections.abc import Callable
from pathlib import Path

from vesper.errors import LocalProtocolError, PeerError, RemoteProtocolError, VesperError
from vesper.transport.close_reason import CloseReason
from vesper.transport.frame_log import RECEIVED, SENT, FrameLog
from vesper.transport.reconnect import Connect, Reconnector
from vesper.transport.transcript import Transcript


class DurableChannel:
    """Frames over one connection after the other.

    Args:
        connect: makes a connection to the peer, and another when it was lost.
        folder: keeps log, receipts and the session's name.
        names_session: whether this end names the session; the other takes the name over.
        directions: how receipts call what is sent and what is received.
        reconnects: whether to connect again when the connection is lost, or to stop.
        lost: is told each time why this end waits for another connection.
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
        )
        self._directions = directions
        self._counts = [0, 0]
        self._pending: bytes | None = None

    @property
    def session(self) -> str:
        """Name of the session, the same at both ends once they have met."""
        return self._reconnector.session.hex()

    @property
    def counts(self) -> tuple[int, int]:
        """Frames that the session has sent, and received and gone on from."""
        return self._counts[SENT], self._counts[RECEIVED]

    @property
    def has_checkpoints(self) -> bool:
        """Whether the session was marked before: frames from before may be gone."""
        return self._log.has_checkpoints

    @property
    def is_in_sync(self) -> bool:
        """Whether both ends had, when they met last, everything that the other has sent."""
        peer = self._reconnector.peer
        return (peer.received, peer.sent) == (self._log.count(SENT), self._log.count(RECEIVED))

    def connect_now(self) -> None:
        """Connect now, and find out what the peer has."""
        self._reconnector.ensure_connected()

    def refuse_stale_copy(self) -> None:
        """Refuse what must have happened before: the peer has frames that come after it.

        Raises:
            VesperError: this side was put back from an older copy.
        """
        sent, known = self._counts[SENT], self._reconnector.peer.received
        if sent < known:
            raise VesperError(
                f"the peer has {known} frames, this side is at {sent} and would draw noise that "
                f"was drawn before: it was put back from an older copy. Restore the newest state "
                f"and ledger, or begin a new run on both sides"
            )

    def rewind_to(self, counts: tuple[int, int]) -> None:
        """Begin from a mark: the session has sent and received so many frames."""
        self._accept()  # its opening came before
        self._counts = list(counts)

    def persist_received(self) -> None:
        """Go on from what came last: it is in the log, and comes from there after a restart."""
        self._accept()

    def flush_received(self) -> None:
        """Go on from what came last; all that has crossed is on disk afterwards."""
        self._accept()
        self._transcript.flush()
        self._log.sync()

    def mark_checkpoint(self) -> None:
        """Tell the log that the session can begin from here, which `settle` has made sure of."""
        self._log.start_segment()

    def send(self, frame: bytes) -> None:
        """Log, then send; a frame that was logged before is not sent again from here."""
        self._accept()
        number = self._counts[SENT]
        self._refuse_other(number, frame)
        is_new = number >= self._log.count(SENT)
        if is_new:
            self._log.append(SENT, number, frame)
        self._count(SENT, frame)
        if is_new and not self._reconnector.is_open:
            self._reconnector.ensure_connected()  # sends it too
        elif is_new and number >= self._reconnector.peer.received:  # else our log had lost it
            self._reconnector.send(frame)

    def receive(self) -> bytes:
        """Read the next frame from the log, or wait for it."""
        self._accept()
        number = self._counts[RECEIVED]
        frame = self._log.frame(RECEIVED, number)
        if frame is None:
            self._reconnector.ensure_connected()
            self._refuse_to_wait_in_vain(number)
            frame = self._reconnector.receive()
        self._pending = frame
        return frame

    def finish(self, *, patience: float) -> None:
        """Wait from now on at most so long for a lost peer: all that matters has crossed."""
        self._reconnector.finish(patience=patience)

    def linger(self, *, expects_last_frame: bool = False) -> None:
        """Stay until the peer has everything: it leaves, or does not come back in time.

        Args:
            expects_last_frame: the peer says one more thing when it has; else both would stay.
        """
        has_heard = False
        while not (expects_last_frame and has_heard):
            try:
                self._reconnector.ensure_connected()
                self._reconnector.receive()
                has_heard = True
            except PeerError:
                return  # lost, gone for good, or talking nonsense: it has had its chance

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """End the connection and let go of the files; in good order, go on from what came last."""
        try:
            if why is CloseReason.DONE:
                self._accept()
        finally:
            self._reconnector.close(why)
            self._log.close()
            self._transcript.close()

    def _accept(self) -> None:
        """Log what came last: the session has not refused it."""
        frame, self._pending = self._pending, None
        if frame is None:
            return
        number = self._counts[RECEIVED]
        if number >= self._log.count(RECEIVED):
            self._log.append(RECEIVED, number, frame)
        self._count(RECEIVED, frame)

    def _count(self, direction: int, frame: bytes) -> None:
        """Count a frame and add it to the receipts."""
        self._transcript.record(sum(self._counts), self._directions[direction], frame)
        self._counts[direction] += 1

    def _refuse_other(self, number: int, frame: bytes) -> None:
        """Refuse to send, after a restart, other bytes than before."""
        if not self._transcript.matches(sum(self._counts), frame):
            raise LocalProtocolError(
                f"frame {number}: going on from the last mark has led to other bytes than before; "
                f"data, settings or versions have changed since. Nothing was sent"
            )

    def _refuse_to_wait_in_vain(self, number: int) -> None:
        """Refuse a peer that has all it ever answered to, and more: it waits for us, as we for it.

        A log that was lost with the power is made again from what the peer has sent; who has not
        caught up with what the peer has received by then never will.
        """
        sent, peer = self._counts[SENT], self._reconnector.peer
        if sent < peer.received and number >= peer.sent:
            raise RemoteProtocolError(
                f"the peer says it has {peer.received} frames, but all that it has sent leads this "
                f"side to no more than {sent}: one of the two was put back from an older copy. "
                f"Restore the newest state, or begin a new run on both sides"
            )
