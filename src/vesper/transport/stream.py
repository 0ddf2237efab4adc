"""One end of a bidirectional stream of chunks: whole frames, and heartbeats to watch the peer.

    chunk = kind (u8), content
    kind  = 0 heartbeat, 1 part of a frame, 2 last part of a frame,
            3 close, with one byte for the close reason

A separate thread sends a heartbeat every quarter of the patience while this end works; the peer
does the same. So silence for longer than the patience means that the peer is frozen, cut off or
dead, never that it is busy.

Little is read ahead: 1 MiB of frames that nobody has asked for yet. Only the frame that `receive`
waits for may be larger, up to the limit of the call. Until then the rest stays with the peer.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from time import monotonic

from vesper.errors import PeerLostError, RemoteProtocolError
from vesper.transport.channel import MAX_FRAME_BYTES, frame_above_limit
from vesper.transport.close_reason import CloseReason, error_for_close_reason

CHUNK = 1 << 18
READ_AHEAD = 4 * CHUNK
"""Bytes of frames that are read before `receive` is called for them."""
CHUNK_OVERHEAD = 64
"""Bytes of memory that a chunk takes in addition to its content."""
CLOSE_TIMEOUT = 5.0
"""Seconds for the last frames to arrive before the stream is cancelled."""
HEARTBEAT_CHUNK, PART_CHUNK, LAST_CHUNK, CLOSE_CHUNK = b"\0", b"\1", b"\2", b"\3"
_CLOSE_REASONS = {bytes([why]): why for why in CloseReason}

Waiting = Callable[[float], None]
"""Receives the seconds waited so far, from time to time, while an end waits."""


def ignore_waiting(seconds: float) -> None:
    """Do nothing: the default for `Waiting`."""


class StreamChannel:
    """Channel over a stream of chunks.

    The owner of the stream feeds `receive_chunk` and sends what `outgoing_chunks` yields.

    Args:
        peer: name of the other end, for messages.
        patience: seconds of silence after which the peer counts as gone.
        cancel: ends the stream at once; called after the last frames had time to arrive.
        waiting: receives the seconds waited so far, from time to time, while `receive` waits.
    """

    def __init__(
        self,
        *,
        peer: str,
        patience: float,
        cancel: Callable[[], None],
        waiting: Waiting = ignore_waiting,
    ) -> None:
        self._peer, self._patience, self._waiting = peer, patience, waiting
        self._cancel = cancel
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._in: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
        self._last_activity = monotonic()
        self._closed, self._over = threading.Event(), threading.Event()
        self._parts: list[bytes] = []
        self._is_broken = False
        self._room = threading.Condition()
        self._held_bytes, self._held_frames = 0, 0
        self._due: int | None = None  # limit of the frame that `receive` waits for
        threading.Thread(target=self._send_heartbeats, daemon=True).start()

    def send(self, frame: bytes) -> None:
        """Queue a frame for sending."""
        if self._closed.is_set():
            raise PeerLostError(f"the connection to {self._peer} is closed")
        view = memoryview(frame)
        last = max(len(frame) - 1, 0) // CHUNK * CHUNK
        for start in range(0, last, CHUNK):
            self._out.put(PART_CHUNK + view[start : start + CHUNK])
        self._out.put(LAST_CHUNK + view[last:])

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        """Wait for a frame of at most `limit` bytes.

        Raises:
            PeerLostError: the connection is lost, or the peer was silent for longer than the
                patience.
            PeerStoppedError: the peer has ended the session.
            RemoteProtocolError: the peer sent bytes that are not part of a frame, or a frame
                above the limit.
        """
        self._make_room(due=limit)
        try:
            frame = self._next_frame()
        finally:
            self._make_room(due=None)
        if len(frame) > limit:
            raise frame_above_limit(limit, self._peer)
        return frame

    def _next_frame(self) -> bytes:
        started = monotonic()
        while True:
            before = monotonic()
            pause = min(1.0, self._patience / 4)
            try:
                item = self._in.get(timeout=pause)
            except queue.Empty:
                now = monotonic()
                if now - before > 2 * pause + 1:
                    # This process was suspended for a while, which is not the peer's fault.
                    self._last_activity = now
                if now - self._last_activity > self._patience:
                    self.abandon()
                    raise PeerLostError(
                        f"{self._peer} has been silent for {now - self._last_activity:.0f} s "
                        f"(patience {self._patience:g} s): it is stopped, cut off or gone"
                    ) from None
                self._report_waiting(now - started)
                continue
            if isinstance(item, Exception):
                self._in.put(item)  # so that every later call raises it too
                if not isinstance(item, RemoteProtocolError):
                    self.abandon()
                raise item
            self._hold(-len(item) - CHUNK_OVERHEAD, frames=-1)
            return item

    def _report_waiting(self, seconds: float) -> None:
        """Report how long `receive` has waited; `waiting` may raise `PeerLostError` to give up."""
        try:
            self._waiting(seconds)
        except PeerLostError:
            self.close(CloseReason.EXCLUDED)
            raise

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """Send the close reason; end the stream once the peer has ended it, or after a timeout."""
        if not self._closed.is_set():
            self._closed.set()
            self._make_room(due=None)
            self._out.put(CLOSE_CHUNK + bytes([why]))
            self._out.put(None)
            self._over.wait(min(self._patience, CLOSE_TIMEOUT))
            self._cancel()

    def abandon(self) -> None:
        """End the stream at once, without a close reason."""
        if not self._closed.is_set():
            self._closed.set()
            self._make_room(due=None)
            self._out.put(None)
            self._cancel()

    def receive_chunk(self, chunk: bytes) -> None:
        """Process a chunk from the peer; a malformed one makes `receive` raise an error.

        Waits while there is no room for it.
        """
        self._last_activity = monotonic()
        kind = chunk[:1]
        if kind == HEARTBEAT_CHUNK or self._is_broken:
            return
        if kind == CLOSE_CHUNK and chunk[1:] in _CLOSE_REASONS:
            self.end_input(error_for_close_reason(_CLOSE_REASONS[chunk[1:]], self._peer))
            return
        try:
            if kind not in (PART_CHUNK, LAST_CHUNK) or (kind == PART_CHUNK and len(chunk) == 1):
                raise RemoteProtocolError(f"{self._peer} sent bytes that are not part of a frame")
            has_room = self._wait_for_room(len(chunk) - 1)
        except RemoteProtocolError as error:
            self._is_broken = True  # the stream stays open, so that `close` can send the reason
            self._parts = []
            self._in.put(error)
            return
        if not has_room:
            return
        self._parts.append(chunk[1:])
        if kind == LAST_CHUNK:
            self._hold(-CHUNK_OVERHEAD * (len(self._parts) - 1), frames=1)  # the parts become one
            self._in.put(b"".join(self._parts) if len(self._parts) > 1 else self._parts[0])
            self._parts = []

    def _wait_for_room(self, size: int) -> bool:
        """Wait until a part of this size may be held, and count it; False if nobody wants it.

        Raises:
            RemoteProtocolError: its frame is above the limit.
        """
        with self._room:
            while not self._has_room(size):
                if self._closed.is_set() or self._over.is_set():
                    return False
                self._room.wait()
            self._held_bytes += size + CHUNK_OVERHEAD
        self._last_activity = monotonic()  # while this waited, nothing could arrive
        return True

    def _has_room(self, size: int) -> bool:
        """Whether a part fits, among frames read ahead or as part of the frame that is due."""
        needed = self._held_bytes + size + CHUNK_OVERHEAD
        if needed <= READ_AHEAD:
            return True
        if self._due is None or self._held_frames:
            return False
        overhead = CHUNK_OVERHEAD * (self._due // CHUNK)  # tiny parts have more, and are refused
        if needed > self._due + READ_AHEAD + overhead:
            raise frame_above_limit(self._due, self._peer)
        return True

    def _make_room(self, *, due: int | None) -> None:
        """Let the reading thread continue: a frame is due now, or none, or the stream is over."""
        with self._room:
            self._due = due
            self._room.notify_all()

    def _hold(self, change: int, *, frames: int) -> None:
        """Count bytes that are held, and complete frames."""
        with self._room:
            self._held_bytes += change
            self._held_frames += frames
            self._room.notify_all()

    def end_input(self, why: Exception) -> None:
        """Record that nothing more will arrive."""
        self._over.set()
        self._make_room(due=None)
        self._in.put(why)

    def outgoing_chunks(self) -> Iterator[bytes]:
        """Yield chunks to send until the channel is closed."""
        while (chunk := self._out.get()) is not None:
            yield chunk

    def _send_heartbeats(self) -> None:
        while not self._closed.wait(self._patience / 4):
            self._out.put(HEARTBEAT_CHUNK)
