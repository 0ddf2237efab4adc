"""The boundary: what a transport must be able to do, and nothing more."""

from typing import Protocol


class Channel(Protocol):
    """Whole frames, in order, each exactly once, between two ends."""

    def send(self, frame: bytes) -> None:
        """Hand a frame over; returns when it is on its way.

        Raises:
            PeerError: the other end is gone.
        """

    def receive(self) -> bytes:
        """Wait for the next frame.

        Raises:
            PeerError: the other end is gone, or was silent for longer than the patience.
        """

    def close(self) -> None:
        """End the connection; the other end's next call raises PeerError."""
