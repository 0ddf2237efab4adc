"""The frames of an alignment: fixed sizes, a limit on each, no trust in the peer.

opening   = MAGIC, private (u8), count (u64), nonce
digests   = count (u64); then blocks of whole digests until all are there
positions = u64 each, ascending
proof     = 32 bytes
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vesper.errors import RemoteProtocolError
from vesper.graph.source import Column
from vesper.transport.channel import Channel

MAGIC = b"VSPA1"
NONCE = 32
PROOF = 32
BLOCK = 1 << 16
"""Digests in a frame."""
MOST_IDS = 1 << 31

_OPENING = struct.Struct(f"<5sBQ{NONCE}s")
_COUNT = struct.Struct("<Q")


@dataclass(frozen=True)
class Opening:
    """First word of each side."""

    nonce: bytes
    count: int
    private: bool

    def packed(self) -> bytes:
        """As it crosses."""
        return _OPENING.pack(MAGIC, self.private, self.count, self.nonce)


def receive_opening(channel: Channel) -> Opening:
    """Wait for the peer's first word."""
    frame = channel.receive()
    if len(frame) != _OPENING.size or not frame.startswith(MAGIC):
        raise RemoteProtocolError(
            "the peer does not align ids; start `vesper align`, of the same version, on both sides"
        )
    _, private, count, nonce = _OPENING.unpack(frame)
    if private > 1 or not 0 < count <= MOST_IDS:
        raise RemoteProtocolError(f"the peer announced {count} ids, expected 1 to {MOST_IDS}")
    return Opening(nonce=nonce, count=count, private=bool(private))


def send_digests(channel: Channel, digests: Column, width: int) -> None:
    """Send all, a block at a time."""
    channel.send(_COUNT.pack(len(digests)))
    content = b"".join(digest for digest in digests.to_pylist() if digest is not None)
    for start in range(0, len(content), BLOCK * width):
        channel.send(content[start : start + BLOCK * width])


def receive_digests(channel: Channel, width: int, *, most: int) -> Column:
    """Wait for all; refuse more than were announced, and any twice."""
    frame = channel.receive()
    count = _COUNT.unpack(frame)[0] if len(frame) == _COUNT.size else most + 1
    if count > most:
        raise RemoteProtocolError(f"the peer sent no count of ids up to {most}")
    parts: list[bytes] = []
    left = count * width
    while left:
        part = channel.receive()
        if len(part) != min(left, BLOCK * width):
            raise RemoteProtocolError("the peer sent a block of ids of another size")
        parts.append(part)
        left -= len(part)
    content: Any = pa.py_buffer(b"".join(parts))
    digests = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, content])
    if len(digests.unique()) != count:
        raise RemoteProtocolError("the peer sent an id twice")
    return digests


def send_positions(channel: Channel, positions: NDArray[np.int64]) -> None:
    """Send ascending positions."""
    channel.send(positions.astype("<u8").tobytes())


def receive_positions(channel: Channel, *, below: int) -> NDArray[np.int64]:
    """Wait for ascending positions below a limit."""
    frame = channel.receive()
    if len(frame) % 8 or len(frame) > 8 * below:
        raise RemoteProtocolError("the peer sent positions that cannot be")
    positions = np.frombuffer(frame, dtype="<u8")
    if len(positions) and (positions[-1] >= below or (positions[1:] <= positions[:-1]).any()):
        raise RemoteProtocolError("the peer sent positions that cannot be")
    return positions.astype(np.int64)


def receive_proof(channel: Channel) -> bytes:
    """Wait for a proof."""
    frame = channel.receive()
    if len(frame) != PROOF:
        raise RemoteProtocolError(f"the peer sent a proof of {len(frame)} bytes, expected {PROOF}")
    return frame
