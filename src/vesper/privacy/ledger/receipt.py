"""Receipts: proof that an event was charged, which `mechanism.release` requires to read an edge.

Also the encoding of receiver sets in the ledger: all nodes, a list, or a bitmap. Receivers are
chosen without reading an edge, so the set is public to the data party's auditor; it is stored in
full because the filter needs to know what every single node has spent.
"""

import os

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError
from vesper.privacy.events import Event

_SEAL = object()
"""Only `account.py` uses it, so that a receipt cannot be made by accident."""


class Receipt:
    """One charged event, good for one release. Made by `Account.charge` after the entry is on disk.

    Args:
        event: what was charged.
        receivers: the nodes charged, as encoded in the ledger.
        graph: name of the graph's account.
        sequence: number of the ledger entry.
        seal: known only to `account.py`.
    """

    def __init__(
        self, *, event: Event, receivers: bytes, graph: str, sequence: int, seal: object
    ) -> None:
        if seal is not _SEAL:
            raise BudgetError("A receipt is made by charging a ledger, not by hand.")
        self.event, self.receivers, self.graph = event, receivers, graph
        self.sequence = sequence
        self._process = os.getpid()
        self._uses = [True]  # popped by whichever thread spends it first

    def spend(self, *, event: Event, receivers: bytes, graph: str) -> None:
        """Use up the receipt for exactly what was charged.

        Raises:
            BudgetError: it is for another release, from another process, or already used.
        """
        if (event, receivers, graph) != (self.event, self.receivers, self.graph):
            raise BudgetError("The receipt is for another release; charge this one.")
        if os.getpid() != self._process:
            raise BudgetError(
                "A receipt is valid only in the process that charged it, not in a fork of it."
            )
        try:
            self._uses.pop()
        except IndexError:
            raise BudgetError(
                f"Receipt {self.sequence} was already used; charge a new release."
            ) from None

    def __reduce__(self) -> str:
        raise TypeError("a receipt cannot be copied or saved: it could be used twice")


Receivers = NDArray[np.int64] | None
"""Distinct node numbers; None means every node."""

_ALL, _LIST, _BITMAP = b"A", b"L", b"B"


def encode(receivers: Receivers, num_nodes: int) -> bytes:
    """Encode a receiver set in the shortest of the three forms; equal sets give equal bytes."""
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


def everyone(num_nodes: int) -> bytes:
    """Encode the set of all nodes."""
    return _ALL + num_nodes.to_bytes(8, "little")


def add_cost(blob: bytes, cost: int, spent: NDArray[np.int64]) -> None:
    """Add `cost` to `spent` of every receiver in `blob`."""
    kind, body = _parse(blob, len(spent))
    if kind == _ALL:
        spent += cost
    elif kind == _LIST:
        spent[np.frombuffer(body, dtype="<i8")] += cost
    else:
        spent += np.multiply(_members(body, len(spent)), np.int64(cost))


def largest(blob: bytes, spent: NDArray[np.int64]) -> int:
    """Return the largest `spent` of the receivers in `blob`; 0 if there are none."""
    kind, body = _parse(blob, len(spent))
    if kind == _ALL:
        return int(spent.max(initial=0))
    if kind == _LIST:
        return int(spent[np.frombuffer(body, dtype="<i8")].max(initial=0))
    return int((spent * _members(body, len(spent))).max(initial=0))  # sums are never below 0


def is_everyone(blob: bytes) -> bool:
    """Whether every node is a receiver in `blob`."""
    return blob[:1] == _ALL


def count(blob: bytes) -> int:
    """Number of receivers in `blob`."""
    kind, body = _parse(blob, size := int.from_bytes(blob[1:9], "little"))
    if kind == _ALL:
        return size
    return len(body) // 8 if kind == _LIST else int(_members(body, size).sum())


def _parse(blob: bytes, num_nodes: int) -> tuple[bytes, bytes]:
    """Split into form and body; refuse a set of another number of nodes.

    All nodes are all nodes, whichever version of the graph they were counted in.
    """
    kind, size, body = blob[:1], int.from_bytes(blob[1:9], "little"), blob[9:]
    if size != num_nodes and kind != _ALL:
        raise InputError(f"Expected receivers among {num_nodes} nodes, got a set among {size}.")
    lengths = {_ALL: len(blob) == 9, _LIST: len(body) % 8 == 0}
    lengths[_BITMAP] = len(body) == (num_nodes + 7) // 8
    if not lengths.get(kind, False):
        raise InputError(f"Expected a receiver set of a known form, got {kind!r}.")
    return kind, body


def _members(body: bytes, num_nodes: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(body, dtype=np.uint8), count=num_nodes)
    return bits.view(np.bool_)  # (num_nodes,)
