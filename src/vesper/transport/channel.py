"""The boundary: what a transport must be able to do, and nothing more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from vesper.transport.close_reason import CloseReason, close_reason_for


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
            PeerLostError: the other end is gone, or was silent for longer than the patience.
            PeerStoppedError: it has left for a reason that waiting does not mend.
            RemoteProtocolError: what came is no frame.
        """

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """End the connection; the other end's next call raises what `why` means to it."""


C = TypeVar("C", bound=Channel)


@contextmanager
def closing_with_reason(
    channel: C, reason_for: Callable[[BaseException], CloseReason] = close_reason_for
) -> Iterator[C]:
    """Close a channel in the end; the other end is told what kind of error ended it, if one did."""
    why = CloseReason.DONE
    try:
        yield channel
    except BaseException as error:
        why = reason_for(error)
        raise
    finally:
        channel.close(why)
