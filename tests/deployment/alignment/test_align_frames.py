"""Frames of an alignment: what is sent is what arrives, whatever the number of blocks."""

import numpy as np
import pyarrow as pa
import pytest

from vesper.deployment.alignment import align
from vesper.deployment.alignment.align import (
    AlignmentHello,
    receive_digests,
    receive_hello,
    receive_positions,
    receive_proof,
    send_digests,
    send_positions,
)
from vesper.errors import RemoteProtocolError
from vesper.transport.memory import memory_pair

WIDTH = 4


def test_opening() -> None:
    one, other = memory_pair(patience=5)
    hello = AlignmentHello(nonce=bytes(range(32)), count=7, private=True)
    one.send(hello.to_bytes())
    assert receive_hello(other) == hello


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_digests(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "BLOCK", 3)
    one, other = memory_pair(patience=5)
    digests = pa.array([k.to_bytes(WIDTH, "big") for k in range(count)], type=pa.binary(WIDTH))
    send_digests(one, digests, WIDTH)
    assert receive_digests(other, WIDTH, max_count=10).equals(digests)


def test_a_count_alone_allocates_no_memory() -> None:
    one, other = memory_pair(patience=0.05)
    one.send((1 << 31).to_bytes(8, "little"))
    one.send(b"short")
    with pytest.raises(RemoteProtocolError, match="a block of ids of the wrong size"):
        receive_digests(other, WIDTH, max_count=1 << 31)


def test_positions() -> None:
    one, other = memory_pair(patience=5)
    for positions in ([], [0], [1, 5, 9]):
        send_positions(one, np.array(positions, dtype=np.int64))
        assert receive_positions(other, below=10).tolist() == positions
    send_positions(one, np.array([10]))
    with pytest.raises(RemoteProtocolError, match="invalid positions"):
        receive_positions(other, below=10)


def test_proof() -> None:
    one, other = memory_pair(patience=5)
    one.send(bytes(32))
    assert receive_proof(other) == bytes(32)
