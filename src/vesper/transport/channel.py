"""Channel: the interface that every transport implements."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from vesper.transport.close_reason import CloseReason, close_reason_for


class Channel(Protocol):
    """Two ends that exchange whole frames, in order, each exactly once."""

    def send(self, frame: bytes) -> None:
        """Send a frame; returns as soon as it is queued.

        Raises:
            PeerError: the other end is gone.
        """

    def receive(self) -> bytes:
        """Wait for the next frame.

        Raises:
            PeerLostError: the other end is gone, or was silent for longer than the patience.
            PeerStoppedError: it has closed the connection for a reason that waiting does not fix.
            RemoteProtocolError: the bytes received are not a frame.
        """

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """Close the connection; the other end's next call raises the error that `why` implies."""


C = TypeVar("C", bound=Channel)


@contextmanager
def closing_with_reason(
    channel: C, reason_for: Callable[[BaseException], CloseReason] = close_reason_for
) -> Iterator[C]:
    """Close a channel at the end; the other end learns the kind of error, if one occurred.

    Args:
        channel: the channel to close.
        reason_for: maps an error to the close reason that is sent.
    """
    why = CloseReason.DONE
    try:
        yield channel
    except BaseException as error:
        why = reason_for(error)
        raise
    finally:
        channel.close(why)
