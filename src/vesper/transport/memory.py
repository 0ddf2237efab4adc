"""Two ends in one process: for simulation and for tests. Same contract as the network."""

import queue
import threading

from vesper.errors import PeerLostError
from vesper.transport.close_reason import CloseReason, error_for_close_reason

FrameOrClose = bytes | CloseReason
"""A frame, or why there are no more."""


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
        """Put a frame on the way."""
        if self._closed:
            raise PeerLostError("the connection is closed")
        self._outgoing.put(bytes(frame))

    def receive(self) -> bytes:
        """Wait at most `patience` seconds for the next frame, or as long as it takes."""
        try:
            frame = self._incoming.get(timeout=self._patience)
        except queue.Empty:
            raise PeerLostError(
                f"the peer was silent for {self._patience or 0:g} s; stopping"
            ) from None
        if isinstance(frame, CloseReason):
            self._incoming.put(frame)  # every later call learns it too
            raise error_for_close_reason(frame, "the peer")
        return frame

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """Tell the other end."""
        if not self._closed:
            self._closed = True
            self._outgoing.put(why)


def memory_pair(*, patience: float | None = None) -> tuple[MemoryChannel, MemoryChannel]:
    """Make two connected ends.

    Without a patience an end waits as long as it takes: in one process the other end is busy, on a
    large graph for many minutes, or has closed.
    """
    forth: queue.Queue[FrameOrClose] = queue.Queue()
    back: queue.Queue[FrameOrClose] = queue.Queue()
    return MemoryChannel(forth, back, patience), MemoryChannel(back, forth, patience)


class MemoryRendezvous:
    """A place where two ends in one process meet, as often as both ask for it."""

    def __init__(self, *, patience: float = 600.0) -> None:
        self._patience = patience
        self._ends: tuple[MemoryChannel, MemoryChannel] | None = None
        self._barrier = threading.Barrier(2, action=self._make, timeout=patience)
        self.is_closed = False
        """Whether nobody meets here any more."""

    def close(self) -> None:
        """Meet nobody any more."""
        self.is_closed = True
        self._barrier.abort()

    def _make(self) -> None:
        self._ends = memory_pair(patience=self._patience)

    def connect(self, end: int, limit: float | None = None) -> MemoryChannel:
        """Wait for the other end; give end 0 or 1 of a new connection."""
        try:
            self._barrier.wait(limit)
        except threading.BrokenBarrierError:
            if not self.is_closed:
                self._barrier.reset()
            raise PeerLostError("the peer has not come") from None
        assert self._ends is not None
        return self._ends[end]
