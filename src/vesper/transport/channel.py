"""Channel: the interface that every transport implements."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from vesper.errors import RemoteProtocolError
from vesper.transport.close_reason import CloseReason, close_reason_for

MAX_FRAME_BYTES = 1 << 30
"""Largest frame of any kind."""


class Channel(Protocol):
    """Two ends that exchange whole frames, in order, each exactly once."""

    def send(self, frame: bytes) -> None:
        """Send a frame; returns as soon as it is queued.

        Raises:
            PeerError: the other end is gone.
        """

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        """Wait for the next frame.

        Args:
            limit: largest size that the frame may have at this point; an end that receives over a
                network never holds much more than that.

        Raises:
            PeerLostError: the other end is gone, or was silent for longer than the patience.
            PeerStoppedError: it has closed the connection for a reason that waiting does not fix.
            RemoteProtocolError: the bytes received are not a frame, or one above the limit.
        """

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        """Close the connection; the other end's next call raises the error that `why` implies."""


def frame_above_limit(limit: int, peer: str) -> RemoteProtocolError:
    """Error for a frame, or what has arrived of it, above the limit."""
    return RemoteProtocolError(
        f"{peer} sent a frame of more than the {limit} bytes that are allowed at this point"
    )


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
