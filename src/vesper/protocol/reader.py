"""A cursor over the bytes of a peer: it cannot leave the frame, and blames the peer."""

import struct

from vesper.errors import RemoteProtocolError


class Reader:
    """Reads a frame from its beginning."""

    def __init__(self, frame: bytes) -> None:
        self._frame, self._at = frame, 0

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._frame) - self._at

    def take(self, count: int) -> bytes:
        """Give the next bytes."""
        if count > self.left:
            raise RemoteProtocolError("the peer sent a message that ends too early")
        self._at += count
        return self._frame[self._at - count : self._at]

    def number(self, form: str) -> int:
        """Read one whole number, in the notation of `struct`."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])
