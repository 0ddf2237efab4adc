"""Messages to bytes and back: little-endian, explicit shapes, limits on every size, no pickle.

frame  = MAGIC, kind (u8), fields in declaration order
int    = i64          str, bytes = u32 length, content        ids = u32 count, str each
float  = f64, finite
tensor = u8 dimensions, u32 each, float32 content
"""

import math
import struct
from collections.abc import Callable
from dataclasses import fields
from enum import IntEnum
from typing import Any

import numpy as np

from vesper.errors import RemoteProtocolError
from vesper.protocol.messages import (
    Answer,
    AnswererHello,
    AskerHello,
    DataHello,
    Embeddings,
    Farewell,
    Finished,
    Gradients,
    IdTexts,
    LabelHello,
    Message,
    Purpose,
    Query,
    Received,
    Refusal,
    Roster,
    Tensor,
    Verdict,
)

MAGIC = b"VSP1"
LARGEST_FRAME = 1 << 30
KINDS: tuple[type[Message], ...] = (
    DataHello,
    LabelHello,
    Roster,
    Embeddings,
    Gradients,
    Received,
    Finished,
    Farewell,
    AnswererHello,
    AskerHello,
    Query,
    Answer,
    Refusal,
)


def encode(message: Message) -> bytes:
    """Write one message."""
    parts = [MAGIC, bytes([KINDS.index(type(message))])]
    parts += [_WRITERS[f.type](getattr(message, f.name)) for f in fields(message)]
    return b"".join(parts)


def decode(frame: bytes) -> Message:
    """Read one message; whatever is wrong with the bytes is the peer's fault."""
    if len(frame) > LARGEST_FRAME:
        raise RemoteProtocolError(f"the peer sent {len(frame)} bytes, the limit is {LARGEST_FRAME}")
    reader = _Reader(frame)
    if reader.take(4) != MAGIC:
        raise RemoteProtocolError("the peer sent bytes that are no message of this protocol")
    kind = reader.take(1)[0]
    if kind >= len(KINDS):
        raise RemoteProtocolError(f"the peer sent a message of unknown kind {kind}")
    values = [_READERS[f.type](reader) for f in fields(KINDS[kind])]
    if reader.at != len(frame):
        raise RemoteProtocolError(f"the peer sent {len(frame) - reader.at} bytes too many")
    return KINDS[kind](*values)


class _Reader:
    """A cursor that cannot leave the frame."""

    def __init__(self, frame: bytes) -> None:
        self.frame, self.at = frame, 0

    def take(self, count: int) -> bytes:
        if count > len(self.frame) - self.at:
            raise RemoteProtocolError("the peer sent a message that ends too early")
        self.at += count
        return self.frame[self.at - count : self.at]

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])


def _write_bytes(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def _read_bytes(reader: _Reader) -> bytes:
    return reader.take(reader.number("<I"))


def _read_str(reader: _Reader) -> str:
    try:
        return _read_bytes(reader).decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError("the peer sent text that is not UTF-8") from None


def _read_float(reader: _Reader) -> float:
    value = float(struct.unpack("<d", reader.take(8))[0])
    if not math.isfinite(value):
        raise RemoteProtocolError("the peer sent a number that is NaN or infinite")
    return value


def _write_ids(ids: IdTexts) -> bytes:
    return struct.pack("<I", len(ids)) + b"".join(_write_bytes(text.encode()) for text in ids)


def _read_ids(reader: _Reader) -> IdTexts:
    return tuple(_read_str(reader) for _ in range(reader.number("<I")))


def _reader_of(kind: type[IntEnum]) -> Callable[[_Reader], IntEnum]:
    def read(reader: _Reader) -> IntEnum:
        value = reader.number("<q")
        if value not in kind.__members__.values():
            raise RemoteProtocolError(f"the peer sent an unknown {kind.__name__} {value}")
        return kind(value)

    return read


def _write_tensor(tensor: Tensor) -> bytes:
    shape = struct.pack(f"<B{tensor.ndim}I", tensor.ndim, *tensor.shape)
    return shape + tensor.astype("<f4", copy=False).tobytes()


def _read_tensor(reader: _Reader) -> Tensor:
    shape = [reader.number("<I") for _ in range(reader.number("<B"))]
    size = 4
    for length in shape:
        size *= length
    values = np.frombuffer(reader.take(size), dtype="<f4").reshape(shape)
    if not np.isfinite(values).all():
        raise RemoteProtocolError("the peer sent a tensor with NaN or infinite values")
    return values.astype(np.float32)


_WRITERS: dict[Any, Callable[[Any], bytes]] = {
    int: lambda value: struct.pack("<q", value),
    float: lambda value: struct.pack("<d", value),
    Purpose: lambda value: struct.pack("<q", int(value)),
    Verdict: lambda value: struct.pack("<q", int(value)),
    str: lambda value: _write_bytes(value.encode()),
    bytes: _write_bytes,
    IdTexts: _write_ids,
    Tensor: _write_tensor,
}
_READERS: dict[Any, Callable[[_Reader], Any]] = {
    int: lambda reader: reader.number("<q"),
    float: _read_float,
    Purpose: _reader_of(Purpose),
    Verdict: _reader_of(Verdict),
    str: _read_str,
    bytes: _read_bytes,
    IdTexts: _read_ids,
    Tensor: _read_tensor,
}
