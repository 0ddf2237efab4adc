"""Alignment: both sides hold the same labelled ids, in the same order, and have proved it.

    key      = HMAC(nonce of data || nonce of label, "vesper align")
    digest_i = BLAKE2b(key, id_i)                    label -> data, ids ascending
    unknown  = positions of digests that are no node     data -> label
    proof    = HMAC(key, role || ids, ascending)     both ways, each checks the other's

The ids of the label party are those of its roster, which a run sends to the data party anyway. Of
ids that are not nodes, the data party sees only keyed digests, and reports which ones they are.
With `private`, set intersection comes first (`private_intersection`): the rest is then about common
ids only, and neither side learns what else the other has.

Nonces are new each time, so that digests of two alignments cannot be compared. The peer is not
trusted: frames have fixed sizes, and a limit each.

    opening   = MAGIC, private (u8), count (u64), nonce
    digests   = count (u64); then blocks of whole digests until all are there
    positions = u64 each, ascending
    proof     = 32 bytes
"""

import hashlib
import hmac
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vesper.deployment.alignment.private_intersection import intersect_as_data, intersect_as_label
from vesper.errors import InputError, RemoteProtocolError, first_three
from vesper.graph.ids import Ids
from vesper.graph.table_source import Column
from vesper.progress import Progress, no_progress
from vesper.transport.channel import Channel

MAGIC = b"VSPA1"
NONCE_BYTES = 32
PROOF_BYTES = 32
BLOCK = 1 << 16
"""Digests per frame."""
MAX_IDS = 1 << 31

_OPENING = struct.Struct(f"<5sBQ{NONCE_BYTES}s")
_COUNT = struct.Struct("<Q")
MAX_OPENING_BYTES = 1 << 10
"""Enough for the first frame of another command, which is then refused as such."""


@dataclass(frozen=True)
class AlignmentHello:
    """First frame of each side."""

    nonce: bytes
    count: int
    private: bool

    def to_bytes(self) -> bytes:
        """Encode the frame."""
        return _OPENING.pack(MAGIC, self.private, self.count, self.nonce)


def receive_hello(channel: Channel) -> AlignmentHello:
    """Wait for the peer's first frame."""
    frame = channel.receive(MAX_OPENING_BYTES)
    if len(frame) != _OPENING.size or not frame.startswith(MAGIC):
        raise RemoteProtocolError(
            "the peer does not align ids; start `vesper align`, of the same version, on both sides"
        )
    _, private, count, nonce = _OPENING.unpack(frame)
    if private > 1 or not 0 < count <= MAX_IDS:
        raise RemoteProtocolError(f"the peer announced {count} ids, expected 1 to {MAX_IDS}")
    return AlignmentHello(nonce=nonce, count=count, private=bool(private))


def send_digests(channel: Channel, digests: Column, width: int) -> None:
    """Send all digests, block by block."""
    channel.send(_COUNT.pack(len(digests)))
    content = b"".join(digest for digest in digests.to_pylist() if digest is not None)
    for start in range(0, len(content), BLOCK * width):
        channel.send(content[start : start + BLOCK * width])


def receive_digests(channel: Channel, width: int, *, max_count: int) -> Column:
    """Wait for all digests; refuse more than `max_count`, and duplicates."""
    frame = channel.receive(_COUNT.size)
    count = _COUNT.unpack(frame)[0] if len(frame) == _COUNT.size else max_count + 1
    if count > max_count:
        raise RemoteProtocolError(
            f"expected a count of at most {max_count} ids, the peer sent another or none"
        )
    parts: list[bytes] = []
    left = count * width
    while left:
        part = channel.receive(BLOCK * width)
        if len(part) != min(left, BLOCK * width):
            raise RemoteProtocolError("the peer sent a block of ids of the wrong size")
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
    frame = channel.receive(8 * below)
    if len(frame) % 8 or len(frame) > 8 * below:
        raise RemoteProtocolError("the peer sent invalid positions")
    positions = np.frombuffer(frame, dtype="<u8")
    if len(positions) and (positions[-1] >= below or (positions[1:] <= positions[:-1]).any()):
        raise RemoteProtocolError("the peer sent invalid positions")
    return positions.astype(np.int64)


def receive_proof(channel: Channel) -> bytes:
    """Wait for a proof."""
    frame = channel.receive(PROOF_BYTES)
    if len(frame) != PROOF_BYTES:
        raise RemoteProtocolError(
            f"the peer sent a proof of {len(frame)} bytes, expected {PROOF_BYTES}"
        )
    return frame


DIGEST_BYTES = 16


@dataclass(frozen=True)
class Alignment:
    """Result of an alignment: common labelled ids as text, ascending by their bytes."""

    ids: Column
    proof: str
    """Equal on both sides; people can compare it."""
    private: bool


def align_data(
    channel: Channel, ids: Ids, *, private: bool = False, progress: Progress = no_progress
) -> Alignment:
    """Run the data party's side.

    Raises:
        InputError: the label party has ids that are not nodes here, or none in common.
        RemoteProtocolError: the peer broke the protocol.
    """
    texts = _sorted_texts(ids)
    key, num_labels = _exchange_hellos(channel, "data", len(texts), private=private)
    if private:
        intersect_as_data(channel, _as_list(texts), num_labels=num_labels, progress=progress)
    theirs = receive_digests(channel, DIGEST_BYTES, max_count=num_labels)
    if not private and len(theirs) != num_labels:
        raise RemoteProtocolError(f"the peer sent {len(theirs)} ids, announced {num_labels}")
    mine = _digests(key, texts, progress)
    positions = pc.index_in(theirs, value_set=mine)  # null: not a node
    unknown = np.flatnonzero(positions.is_null().to_numpy(zero_copy_only=False))
    send_positions(channel, unknown)
    if len(unknown):
        raise InputError(
            f"{len(unknown)} of {len(theirs)} ids of the label party are not nodes here; `vesper "
            f"align` at the label party names them: it can drop these rows, or you can add the "
            f"nodes, or both can use --private to continue with the common ones"
        )
    common = texts.take(positions)
    return _exchange_proofs(channel, key, common, "data", private=private)


def align_labels(
    channel: Channel,
    ids: Ids,
    *,
    path: Path,
    private: bool = False,
    progress: Progress = no_progress,
) -> Alignment:
    """Run the label party's side; `path` is its table, for messages.

    Raises:
        InputError: ids are unknown to the data party, or none are in common.
        RemoteProtocolError: the peer broke the protocol.
    """
    texts = _sorted_texts(ids)
    key, num_nodes = _exchange_hellos(channel, "label", len(texts), private=private)
    if private:
        common = intersect_as_label(
            channel, _as_list(texts), num_nodes=num_nodes, progress=progress
        )
        texts = texts.take(pa.array(common, type=pa.int64()))
    send_digests(channel, _digests(key, texts, progress), DIGEST_BYTES)
    unknown = receive_positions(channel, below=len(texts))
    if len(unknown):
        named = first_three(texts[int(position)].as_py() for position in unknown[:3])
        raise InputError(
            f"{path}, column id: {len(unknown)} of {len(texts)} ids are unknown to the data party "
            f"({named}); drop these rows, ask the data party to add the nodes, or use --private on "
            f"both sides to continue with the common ones"
        )
    return _exchange_proofs(channel, key, texts, "label", private=private)


def _sorted_texts(ids: Ids) -> Column:
    """Convert ids to text, ascending by their bytes."""
    texts = ids.values.cast(pa.large_string())
    return texts.take(pc.sort_indices(texts))


def _as_list(texts: Column) -> list[str]:
    return [text for text in texts.to_pylist() if text is not None]  # ids are never null


def _exchange_hellos(
    channel: Channel, role: str, count: int, *, private: bool
) -> tuple[bytes, int]:
    """Exchange nonces, sizes and whether the intersection is private."""
    own = AlignmentHello(nonce=secrets.token_bytes(NONCE_BYTES), count=count, private=private)
    channel.send(own.to_bytes())
    other = receive_hello(channel)
    if other.private != private:
        with_it, without = ("this side", "the peer") if private else ("the peer", "this side")
        raise InputError(
            f"{with_it} aligns with --private and {without} without; start both the same way"
        )
    if other.nonce == own.nonce:
        raise RemoteProtocolError("the peer sent back our own nonce")
    data, label = (own, other) if role == "data" else (other, own)
    key = hmac.digest(data.nonce + label.nonce, b"vesper align", "sha256")
    return key, other.count


def _digests(key: bytes, texts: Column, progress: Progress) -> Column:
    digests = [
        hashlib.blake2b(text.encode(), key=key, digest_size=DIGEST_BYTES).digest()
        for text in _as_list(texts)
    ]
    progress("digesting ids", len(digests), len(digests))
    return pa.array(digests, type=pa.binary(DIGEST_BYTES))


def _exchange_proofs(
    channel: Channel, key: bytes, common: Column, role: str, *, private: bool
) -> Alignment:
    """Exchange proofs that both hold the same ids in the same order."""
    if len(common) == 0:
        raise InputError(
            "the two parties have no id in common; make sure that both write ids the same way, for "
            "example '7', not '007' or '7.0'"
        )
    own, expected = (_proof(key, word, common) for word in _proof_roles(role))
    channel.send(own)
    if not hmac.compare_digest(receive_proof(channel), expected):
        raise RemoteProtocolError(
            "the peer's proof does not match: it holds other ids, or another order"
        )
    both = hashlib.sha256(b"".join(sorted((own, expected)))).hexdigest()
    return Alignment(ids=common, proof=both[:16], private=private)


def _proof_roles(role: str) -> tuple[bytes, bytes]:
    return (b"data", b"label") if role == "data" else (b"label", b"data")


def _proof(key: bytes, role: bytes, ids: Column) -> bytes:
    digest = hmac.new(key, role, "sha256")
    for text in _as_list(ids):
        content = text.encode()
        digest.update(len(content).to_bytes(4, "little") + content)
    return digest.digest()
