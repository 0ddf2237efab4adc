"""One end of a two-way stream of chunks: whole frames, signs of life, a watch on the peer.

    chunk = kind (u8), content
    kind  = 0 sign of life, 1 more of the frame follows, 2 end of the frame,
            3 farewell, with the one byte that says why

While this end works, a thread of its own says every quarter of the patience that it is alive; the
peer does the same. So silence for longer than the patience means that the peer is frozen, cut off
or dead, never that it is busy.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from time import monotonic

from vesper.errors import PeerLostError, RemoteProtocolError
from vesper.transport.close_reason import CloseReason, error_for_close_reason

CHUNK = 1 << 18
MAX_FRAME_BYTES = 1 << 30
CHUNK_OVERHEAD = 64
"""Bytes that holding a chunk costs beside its content."""
CLOSE_TIMEOUT = 5.0
"""Seconds that the last frames have to arrive before the stream is ended."""
HEARTBEAT_CHUNK, PART_CHUNK, LAST_CHUNK, CLOSE_CHUNK = b"\0", b"\1", b"\2", b"\3"
_CLOSE_REASONS = {bytes([why]): why for why in CloseReason}

Waiting = Callable[[float], None]
"""Is told now and then, while an end waits, for how many seconds it has."""


def unheard(seconds: float) -> None:
    """Tell nobody."""


class StreamChannel:
    """Frames over chunks; whoever owns the stream feeds `receive_chunk` and sends what `outgoing_chunks` gives.

    Args:
        peer: who is at the other end, for messages.
        patience: seconds of silence after which the peer counts as gone.
        cancel: ends the stream at once; called when what was sent has had time to get out.
        waiting: is told while `receive` waits.
    """

    def __init__(
        self,
        *,
        peer: str,
        patience: float,
        cancel: Callable[[], None],
        waiting: Waiting = unheard,
    ) -> None:
        self._peer, self._patience, self._waiting = peer, patience, waiting
        self._cancel = cancel
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._in: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
        self._last_activity = monotonic()
        self._closed, self._over = threading.Event(), threading.Event()
        self._parts: list[bytes] = []
        self._is_broken = False
        self._queued_bytes, self._count_lock = 0, threading.Lock()
        threading.Thread(target=self._send_heartbeats, daemon=True).start()

    def send(self, frame: bytes) -> None:
        """Put a frame on the way."""
        if self._closed.is_set():
            raise PeerLostError(f"the connection to {self._peer} is closed")
        view = memoryview(frame)
        last = max(len(frame) - 1, 0) // CHUNK * CHUNK
        for start in range(0, last, CHUNK):
            self._out.put(PART_CHUNK + view[start : start + CHUNK])
        self._out.put(LAST_CHUNK + view[last:])

    def receive(self) -> bytes:
        """Wait for a frame; silence for longer than the patience is an error."""
        began = monotonic()
        while True:
            before = monotonic()
            pause = min(1.0, self._patience / 4)
            try:
                found = self._in.get(timeout=pause)
            except queue.Empty:
                now = monotonic()
                if now - before > 2 * pause + 1:
                    self._last_activity = (
                        now  # this process was stopped for a while: not the peer's fault
                    )
                if now - self._last_activity > self._patience:
                    self.abandon()
                    raise PeerLostError(
                        f"{self._peer} has been silent for {now - self._last_activity:.0f} s "
                        f"(patience {self._patience:g} s): it is stopped, cut off or gone"
                    ) from None
                self._report_waiting(now - began)
                continue
            if isinstance(found, Exception):
                self._in.put(found)  # every later call learns it too
                if not isinstance(found, RemoteProtocolError):
                    self.abandon()
                raise found
            self._count(-len(found) - CHUNK_OVERHEAD)
            return found

    def _report_waiting(self, seconds: float) -> None:
        """Tell for how long `receive` has waited; whoever is told may have had enough."""
        try:
            self._waiting(seconds)
        except PeerLostError:
            self.close(CloseReason.EXCLUDED)
            raise

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """Say why and end the stream once what was sent has arrived, or after a moment."""
        if not self._closed.is_set():
            self._closed.set()
            self._out.put(CLOSE_CHUNK + bytes([why]))
            self._out.put(None)
            self._over.wait(min(self._patience, CLOSE_TIMEOUT))
            self._cancel()

    def abandon(self) -> None:
        """End the stream at once, without a word."""
        if not self._closed.is_set():
            self._closed.set()
            self._out.put(None)
            self._cancel()

    def receive_chunk(self, chunk: bytes) -> None:
        """Take a chunk from the peer; whatever is wrong with it is the peer's fault."""
        self._last_activity = monotonic()
        kind = chunk[:1]
        if kind == HEARTBEAT_CHUNK or self._is_broken:
            return
        if kind == CLOSE_CHUNK and chunk[1:] in _CLOSE_REASONS:
            self.end_input(error_for_close_reason(_CLOSE_REASONS[chunk[1:]], self._peer))
            return
        if not self._is_part(chunk):
            self._is_broken = True  # and the stream stays, so that `close` can say why
            why = f"{self._peer} sent bytes that are no part of a frame"
            self._in.put(RemoteProtocolError(why))
            return
        self._parts.append(chunk[1:])
        if kind == LAST_CHUNK:
            self._count(-CHUNK_OVERHEAD * (len(self._parts) - 1))  # they become one
            self._in.put(b"".join(self._parts) if len(self._parts) > 1 else self._parts[0])
            self._parts = []

    def _is_part(self, chunk: bytes) -> bool:
        """Whether it belongs to a frame; what it costs to hold counts, not only what is in it."""
        kind = chunk[:1]
        if kind not in (PART_CHUNK, LAST_CHUNK) or (kind == PART_CHUNK and len(chunk) == 1):
            return False
        return self._count(len(chunk) - 1 + CHUNK_OVERHEAD) <= MAX_FRAME_BYTES

    def end_input(self, why: Exception) -> None:
        """Take note that nothing more will come."""
        self._over.set()
        self._in.put(why)

    def outgoing_chunks(self) -> Iterator[bytes]:
        """Give chunks to send until the channel is closed."""
        while (chunk := self._out.get()) is not None:
            yield chunk

    def _count(self, change: int) -> int:
        """Bytes that have come and that nobody has taken yet."""
        with self._count_lock:
            self._queued_bytes += change
            return self._queued_bytes

    def _send_heartbeats(self) -> None:
        while not self._closed.wait(self._patience / 4):
            self._out.put(HEARTBEAT_CHUNK)
