"""Channel between two ends in one process, for simulation and tests; behaves as the network."""

import queue
import threading

from vesper.errors import PeerLostError
from vesper.transport.channel import MAX_FRAME_BYTES, frame_above_limit
from vesper.transport.close_reason import CloseReason, error_for_close_reason

FrameOrClose = bytes | CloseReason
"""A frame, or the reason why there are no more."""


class MemoryChannel:
    """One end of a pair made by `memory_pair`."""

    def __init__(
        self,
        outgoing: "queue.Queue[FrameOrClose]",
        incoming: "queue.Queue[FrameOrClose]",
        patience: float | None,
    ) -> None:
        self._outgoing, self._incoming, self._patience = outgoing, incoming, patience
        self._closed = False

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        if self._closed:
            raise PeerLostError("the connection is closed")
        self._outgoing.put(bytes(frame))

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        """Wait for the next frame, at most `patience` seconds if there is a patience."""
        try:
            frame = self._incoming.get(timeout=self._patience)
        except queue.Empty:
            raise PeerLostError(
                f"the peer was silent for {self._patience or 0:g} s; stopping"
            ) from None
        if isinstance(frame, CloseReason):
            self._incoming.put(frame)  # so that every later call raises it too
            raise error_for_close_reason(frame, "the peer")
        if len(frame) > limit:
            raise frame_above_limit(limit, "the peer")
        return frame

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """Close this end; the other end's next call raises the error that `why` implies."""
        if not self._closed:
            self._closed = True
            self._outgoing.put(why)


def memory_pair(*, patience: float | None = None) -> tuple[MemoryChannel, MemoryChannel]:
    """Make two connected ends.

    Without a patience an end waits as long as it takes: in one process the other end is either
    busy, for many minutes on a large graph, or has closed.
    """
    one: queue.Queue[FrameOrClose] = queue.Queue()
    other: queue.Queue[FrameOrClose] = queue.Queue()
    return MemoryChannel(one, other, patience), MemoryChannel(other, one, patience)


class MemoryRendezvous:
    """Connects two ends in one process whenever both call `connect`."""

    def __init__(self, *, patience: float = 600.0) -> None:
        self._patience = patience
        self._ends: tuple[MemoryChannel, MemoryChannel] | None = None
        self._barrier = threading.Barrier(2, action=self._make, timeout=patience)
        self.is_closed = False
        """Whether `close` was called."""

    def close(self) -> None:
        """Refuse further connections."""
        self.is_closed = True
        self._barrier.abort()

    def _make(self) -> None:
        self._ends = memory_pair(patience=self._patience)

    def connect(self, end: int, limit: float | None = None) -> MemoryChannel:
        """Wait for the other end; return end 0 or 1 of a new connection.

        Raises:
            PeerLostError: the other end did not connect in time, or `close` was called.
        """
        try:
            self._barrier.wait(limit)
        except threading.BrokenBarrierError:
            if not self.is_closed:
                self._barrier.reset()
            raise PeerLostError("the peer has not connected") from None
        assert self._ends is not None
        return self._ends[end]
