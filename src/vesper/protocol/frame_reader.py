"""A cursor over a frame of the peer, which it cannot leave; errors name the peer."""

import struct
from collections.abc import Iterator

from vesper.errors import RemoteProtocolError

ENDS_EARLY = "the peer sent a message that ends too early"
_LENGTH = struct.Struct("<I")


class FrameReader:
    """Reads a frame from its beginning.

    Every method raises `RemoteProtocolError` where the frame ends too early.
    """

    def __init__(self, frame: bytes) -> None:
        self._frame, self._at = frame, 0

    @property
    def left(self) -> int:
        """Number of bytes not read yet."""
        return len(self._frame) - self._at

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        if count > self.left:
            raise RemoteProtocolError(ENDS_EARLY)
        self._at += count
        return self._frame[self._at - count : self._at]

    def number(self, form: str) -> int:
        """Read one whole number in a format of `struct`."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def read_chunks(self, count: int) -> Iterator[bytes]:
        """Yield `count` pieces, each preceded by its length; one loop, as there may be millions."""
        frame, at = self._frame, self._at
        for _ in range(count):
            start = at + _LENGTH.size
            if start > len(frame):
                raise RemoteProtocolError(ENDS_EARLY)
            at = start + _LENGTH.unpack_from(frame, at)[0]
            if at > len(frame):
                raise RemoteProtocolError(ENDS_EARLY)
            yield frame[start:at]
        self._at = at
