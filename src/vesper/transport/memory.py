"""Two ends in one process: for simulation and for tests. Same contract as the network."""

import queue

from vesper.errors import PeerError

_CLOSED = None


class MemoryChannel:
    """One end of a pair made by `memory_pair`."""

    def __init__(
        self,
        outgoing: "queue.Queue[bytes | None]",
        incoming: "queue.Queue[bytes | None]",
        patience: float,
    ) -> None:
        self._outgoing, self._incoming, self._patience = outgoing, incoming, patience
        self._closed = False

    def send(self, frame: bytes) -> None:
        """Put a frame on the way."""
        if self._closed:
            raise PeerError("the connection is closed")
        self._outgoing.put(bytes(frame))

    def receive(self) -> bytes:
        """Wait at most `patience` seconds for the next frame."""
        try:
            frame = self._incoming.get(timeout=self._patience)
        except queue.Empty:
            raise PeerError(f"the peer was silent for {self._patience:g} s; stopping") from None
        if frame is _CLOSED:
            self._incoming.put(_CLOSED)  # every later call learns it too
            raise PeerError("the peer closed the connection")
        return frame

    def close(self) -> None:
        """Tell the other end."""
        if not self._closed:
            self._closed = True
            self._outgoing.put(_CLOSED)


def memory_pair(*, patience: float = 600.0) -> tuple[MemoryChannel, MemoryChannel]:
    """Make two connected ends."""
    forth: queue.Queue[bytes | None] = queue.Queue()
    back: queue.Queue[bytes | None] = queue.Queue()
    return MemoryChannel(forth, back, patience), MemoryChannel(back, forth, patience)
