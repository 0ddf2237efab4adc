"""Messages to bytes and back: little-endian, explicit shapes, limits on every size, no pickle.

    frame  = MAGIC, kind (u8), fields in declaration order
    int    = i64          str, bytes = u32 length, content        ids = u32 count, str each
    float  = f64, finite                                          tensor: see `fields`

Embeddings and gradients are sent in the format of the contract, every other tensor as float32.
"""

import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from vesper.errors import RemoteProtocolError
from vesper.protocol.fields import ENDS_EARLY, FrameReader, read_tensor, write_tensor
from vesper.protocol.messages import (
    DataHello,
    EmbeddingClientHello,
    EmbeddingQuery,
    Embeddings,
    EmbeddingServerHello,
    EvaluationReply,
    Farewell,
    Gradients,
    IdTexts,
    LabelHello,
    Message,
    Purpose,
    QueryAnswer,
    Roster,
    SessionFinished,
    Tensor,
    Verdict,
    WireTensor,
)
from vesper.protocol.rounding import NO_ROUNDING, Rounding, WireFormat

MAGIC = b"VSP2"
MAX_FRAME_BYTES = 1 << 30
MAX_ID_LENGTH = 1 << 16
KINDS: tuple[type[Message], ...] = (
    DataHello,
    LabelHello,
    Roster,
    Embeddings,
    Gradients,
    EvaluationReply,
    SessionFinished,
    Farewell,
    EmbeddingServerHello,
    EmbeddingClientHello,
    EmbeddingQuery,
    QueryAnswer,
)

FRAME_LIMITS: dict[type[Message], int] = {
    DataHello: 1 << 19,
    LabelHello: 1 << 19,
    EvaluationReply: 1 << 8,
    SessionFinished: 1 << 8,
    Farewell: 1 << 8,
    EmbeddingServerHello: 1 << 19,
    EmbeddingClientHello: 1 << 19,
    EmbeddingQuery: 1 << 26,
}
"""Largest size of a frame in bytes, where it is below `MAX_FRAME_BYTES`."""


@dataclass(frozen=True)
class Limits:
    """Limits of a frame that its reader knows before reading it.

    Args:
        wire: format of embeddings and gradients; None accepts any format.
        ids: largest number of ids in one list.
        frame: largest size in bytes.
    """

    wire: WireFormat | None = None
    ids: int = MAX_FRAME_BYTES
    frame: int = MAX_FRAME_BYTES


NO_LIMITS = Limits()
HEAD_BYTES = 1 << 10
"""More than all fields of a message together, apart from its tensors and ids."""


def largest_frame(kinds: Iterable[type[Any]], limits: Limits = NO_LIMITS) -> int:
    """Largest size of a frame with a message of one of these kinds."""
    return max(
        (min(FRAME_LIMITS.get(kind, limits.frame), limits.frame) for kind in kinds), default=0
    )


def tensor_frame_bytes(*shape: int) -> int:
    """Largest size of a frame with a tensor of this shape, whatever its format."""
    rows, *row = shape
    return min(HEAD_BYTES + (4 * max(rows, 1) + 4) * math.prod(row), MAX_FRAME_BYTES)


def ids_frame_bytes(count: int, *, longest: int) -> int:
    """Largest size of a frame with so many ids of at most `longest` bytes."""
    return min(HEAD_BYTES + count * (4 + longest), MAX_FRAME_BYTES)


def encode(message: Message, rounding: Rounding = NO_ROUNDING) -> bytes:
    """Encode one message; embeddings and gradients are rounded."""
    parts = [MAGIC, bytes([KINDS.index(type(message))])]
    for each in fields(message):
        value = getattr(message, each.name)
        if each.type is WireTensor:
            assert isinstance(message, Embeddings | Gradients)
            parts.append(write_tensor(value, rounding, step=message.step))
        else:
            parts.append(_WRITERS[each.type](value))
    return b"".join(parts)


def decode(frame: bytes, limits: Limits = NO_LIMITS) -> Message:
    """Decode one message.

    Raises:
        RemoteProtocolError: the peer sent bytes that are not a message within the limits.
    """
    reader = FrameReader(frame)
    if reader.take(4) != MAGIC:
        raise RemoteProtocolError("the peer sent bytes that are not a message of this protocol")
    number = reader.take(1)[0]
    if number >= len(KINDS):
        raise RemoteProtocolError(f"the peer sent a message of unknown kind {number}")
    kind = KINDS[number]
    largest = largest_frame([kind], limits)
    if len(frame) > largest:
        raise RemoteProtocolError(
            f"the peer sent a {kind.__name__} of {len(frame)} bytes, the limit is {largest}"
        )
    values = [_READERS[each.type](reader, limits) for each in fields(kind)]
    if reader.left:
        raise RemoteProtocolError(f"the peer sent {reader.left} bytes too many")
    return kind(*values)


def _write_bytes(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def _read_bytes(reader: FrameReader, limits: Limits) -> bytes:
    return reader.take(reader.number("<I"))


def _read_str(reader: FrameReader, limits: Limits) -> str:
    return _text_of(_read_bytes(reader, limits))


def _text_of(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError("the peer sent text that is not UTF-8") from None


def _read_float(reader: FrameReader, limits: Limits) -> float:
    value = float(struct.unpack("<d", reader.take(8))[0])
    if not math.isfinite(value):
        raise RemoteProtocolError("the peer sent a number that is NaN or infinite")
    return value


def _write_ids(ids: IdTexts) -> bytes:
    return struct.pack("<I", len(ids)) + b"".join(_write_bytes(text.encode()) for text in ids)


def _read_ids(reader: FrameReader, limits: Limits) -> IdTexts:
    count = reader.number("<I")
    if count > limits.ids:
        raise RemoteProtocolError(f"the peer sent {count} ids, the limit is {limits.ids}")
    if 4 * count > reader.left:
        raise RemoteProtocolError(ENDS_EARLY)
    return tuple(map(_id_of, reader.read_chunks(count)))


def _id_of(content: bytes) -> str:
    text = _text_of(content)
    if len(text) > MAX_ID_LENGTH:
        raise RemoteProtocolError(
            f"the peer sent an id of {len(text)} characters, the limit is {MAX_ID_LENGTH}"
        )
    return text


def _reader_of(kind: type[IntEnum]) -> Callable[[FrameReader, Limits], IntEnum]:
    def read(reader: FrameReader, limits: Limits) -> IntEnum:
        value = reader.number("<q")
        if value not in kind.__members__.values():
            raise RemoteProtocolError(f"the peer sent an unknown {kind.__name__} {value}")
        return kind(value)

    return read


_WRITERS: dict[Any, Callable[[Any], bytes]] = {
    int: lambda value: struct.pack("<q", value),
    float: lambda value: struct.pack("<d", value),
    Purpose: lambda value: struct.pack("<q", int(value)),
    Verdict: lambda value: struct.pack("<q", int(value)),
    str: lambda value: _write_bytes(value.encode()),
    bytes: _write_bytes,
    IdTexts: _write_ids,
    Tensor: lambda value: write_tensor(value, NO_ROUNDING, step=0),
}
_READERS: dict[Any, Callable[[FrameReader, Limits], Any]] = {
    int: lambda reader, limits: reader.number("<q"),
    float: _read_float,
    Purpose: _reader_of(Purpose),
    Verdict: _reader_of(Verdict),
    str: _read_str,
    bytes: _read_bytes,
    IdTexts: _read_ids,
    Tensor: lambda reader, limits: read_tensor(reader, WireFormat.FLOAT32),
    WireTensor: lambda reader, limits: read_tensor(reader, limits.wire),
}
