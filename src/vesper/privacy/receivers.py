"""Which nodes receive a release, as bytes in the ledger: all of them, a list, or a bitmap.

Receivers are chosen without reading an edge, so the set is public to the data party's auditor; it
is stored in full because the filter needs to know what every single node has spent.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.errors import InputError

Receivers = NDArray[np.int64] | None
"""Node numbers, each once; None means every node."""

_ALL, _LIST, _BITMAP = b"A", b"L", b"B"


def encode(receivers: Receivers, num_nodes: int) -> bytes:
    """Write a receiver set in the shortest of the three forms; equal sets give equal bytes."""
    size = num_nodes.to_bytes(8, "little")
    if receivers is None:
        return _ALL + size
    receivers = np.asarray(receivers)
    if receivers.ndim != 1 or receivers.dtype.kind not in "iu":
        raise InputError(
            f"Expected receivers as a list of node numbers, got {receivers.dtype} with "
            f"{receivers.ndim} dimensions."
        )
    member = np.zeros(num_nodes, dtype=bool)
    if len(receivers) and (receivers.min() < 0 or receivers.max() >= num_nodes):
        raise InputError(f"Expected receivers between 0 and {num_nodes - 1}.")
    member[receivers] = True
    count = int(member.sum())
    if count != len(receivers):
        raise InputError(f"Expected each receiver once, got {len(receivers) - count} repeats.")
    if count == num_nodes:
        return _ALL + size
    if 8 * count < num_nodes / 8:
        return _LIST + size + np.flatnonzero(member).astype("<i8").tobytes()
    return _BITMAP + size + np.packbits(member).tobytes()


def add_cost(blob: bytes, cost: int, spent: NDArray[np.int64]) -> None:
    """Add `cost` to `spent` of every receiver in `blob`."""
    kind, size, body = blob[:1], int.from_bytes(blob[1:9], "little"), blob[9:]
    if size != len(spent):
        raise InputError(f"Expected receivers among {len(spent)} nodes, got a set among {size}.")
    if kind == _ALL:
        spent += cost
    elif kind == _LIST:
        spent[np.frombuffer(body, dtype="<i8")] += cost
    elif kind == _BITMAP:
        bits = np.unpackbits(np.frombuffer(body, dtype=np.uint8), count=len(spent))
        spent[bits.astype(bool)] += cost
    else:
        raise InputError(f"Expected a receiver set of a known form, got {kind!r}.")
