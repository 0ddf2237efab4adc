"""Fields of a frame: a cursor that cannot leave the frame, and tensors to bytes and back.

tensor = u8 wire, u8 dimensions, u32 each, scales, entries
scales = float32 per column for int8, none otherwise

Format and shape are explicit, bytes are little-endian, the length follows from the shape.
Digests of the nodes of a batch detect rows that are out of order.
"""

import hashlib
import math
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vesper.errors import RemoteProtocolError
from vesper.protocol.messages import IdTexts, Tensor
from vesper.protocol.rounding import Rounding, WireFormat, to_float16, to_int8

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


def digest_of_roots(roots: NDArray[np.int64]) -> bytes:
    """Digest root positions in the roster order that both sides share."""
    return hashlib.blake2b(roots.astype("<i8").tobytes(), digest_size=16).digest()


def digest_of_ids(ids: IdTexts) -> bytes:
    """Digest ids, in this order."""
    digest = hashlib.blake2b(digest_size=16)
    for text in ids:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(4, "little") + encoded)
    return digest.digest()


MAX_DIMENSIONS = 3
MAX_ENTRIES = 1 << 28
_ENTRIES = {WireFormat.FLOAT32: "<f4", WireFormat.FLOAT16: "<f2", WireFormat.INT8: "i1"}


def write_tensor(tensor: Tensor, rounding: Rounding, *, step: int) -> bytes:
    """Encode a tensor; unless the format is float32, round it with the draws of the step."""
    wire = rounding.wire
    head = struct.pack(f"<BB{tensor.ndim}I", wire, tensor.ndim, *tensor.shape)
    if wire is WireFormat.FLOAT16:
        return (
            head
            + to_float16(tensor, rounding.random_generator(step))
            .astype("<f2", copy=False)
            .tobytes()
        )
    if wire is WireFormat.INT8:
        steps, scales = to_int8(tensor, rounding.random_generator(step))
        return head + scales.astype("<f4", copy=False).tobytes() + steps.tobytes()
    return head + tensor.astype("<f4", copy=False).tobytes()


def read_tensor(reader: FrameReader, expected: WireFormat | None) -> Tensor:
    """Decode a tensor of any format to float32; `expected` None accepts any format.

    Raises:
        RemoteProtocolError: the bytes are not a finite tensor of the expected format.
    """
    kind = reader.number("<B")
    if kind not in WireFormat.__members__.values():
        raise RemoteProtocolError(f"the peer sent a tensor of unknown kind {kind}")
    wire = WireFormat(kind)
    if expected is not None and wire is not expected:
        raise RemoteProtocolError(
            f"the peer sent a tensor of {wire.name.lower()}, expected {expected.name.lower()}"
        )
    dimensions = reader.number("<B")
    if dimensions > MAX_DIMENSIONS:
        raise RemoteProtocolError(f"the peer sent a tensor of {dimensions} dimensions")
    shape = tuple(reader.number("<I") for _ in range(dimensions))
    if math.prod(max(length, 1) for length in shape) > MAX_ENTRIES:
        raise RemoteProtocolError(
            f"the peer sent a tensor of the shape {shape}, which is too large"
        )
    scales: Tensor | None = None
    if wire is WireFormat.INT8:
        scales = np.frombuffer(reader.take(4 * math.prod(shape[1:])), "<f4").reshape(shape[1:])
        if not (np.isfinite(scales) & (scales >= 0)).all():
            raise RemoteProtocolError("the peer sent a tensor with an invalid scale")
    dtype = np.dtype(_ENTRIES[wire])
    entries = np.frombuffer(reader.take(dtype.itemsize * math.prod(shape)), dtype).reshape(shape)
    with np.errstate(over="ignore", invalid="ignore"):  # checked below
        values = entries if scales is None else entries.astype(np.float32) * scales
    if not np.isfinite(values).all():
        raise RemoteProtocolError("the peer sent a tensor with NaN or infinite values")
    return values.astype(np.float32)
