"""Bytes of tensors: explicit format and shape, fixed sizes, and refusal of hostile bytes."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import RemoteProtocolError
from vesper.protocol.fields import MAX_ENTRIES, FrameReader, read_tensor, write_tensor
from vesper.protocol.rounding import Rounding, WireFormat

VALUES = np.random.default_rng(0).normal(size=(50, 3, 2)).astype(np.float32)
ENTRY_BYTES = {WireFormat.FLOAT32: 4, WireFormat.FLOAT16: 2, WireFormat.INT8: 1}
LARGEST_ERROR = {WireFormat.FLOAT32: 0.0, WireFormat.FLOAT16: 4 / 1024, WireFormat.INT8: 4 / 127}


def encoded(wire: WireFormat, values: np.ndarray = VALUES, step: int = 7) -> bytes:
    return write_tensor(values, Rounding(wire, seed=3, role=1), step=step)


@pytest.mark.parametrize("wire", WireFormat)
def test_round_trip(wire: WireFormat) -> None:
    decoded = read_tensor(FrameReader(encoded(wire)), wire)
    assert decoded.dtype == np.float32
    assert decoded.shape == VALUES.shape
    assert np.abs(decoded - VALUES).max() <= LARGEST_ERROR[wire]
    assert encoded(wire) == encoded(wire)
    if wire is not WireFormat.FLOAT32:
        assert encoded(wire) != encoded(wire, step=8)


@pytest.mark.parametrize("wire", WireFormat)
def test_sizes_do_not_depend_on_values(wire: WireFormat) -> None:
    scales = 4 * 3 * 2 if wire is WireFormat.INT8 else 0
    expected = 2 + 4 * 3 + scales + ENTRY_BYTES[wire] * VALUES.size
    assert {len(encoded(wire, scale * VALUES)) for scale in (0.0, 1.0, 1e4)} == {expected}


@pytest.mark.parametrize("sent", WireFormat)
@pytest.mark.parametrize("expected", WireFormat)
def test_only_the_format_of_the_contract_is_accepted(
    sent: WireFormat, expected: WireFormat
) -> None:
    if sent is not expected:
        with pytest.raises(RemoteProtocolError, match=f"expected {expected.name.lower()}"):
            read_tensor(FrameReader(encoded(sent)), expected)
    read_tensor(FrameReader(encoded(sent)), None)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\x03\x01\x01\0\0\0", "unknown kind 3"),
        (b"\xff\0", "unknown kind 255"),
        (b"\0\xff", "255 dimensions"),
        (struct.pack("<BB3I", 0, 3, 0, 2**32 - 1, 2**32 - 1), "too large"),
        (struct.pack("<BB2I", 2, 2, 0, MAX_ENTRIES + 1), "too large"),
        (struct.pack("<BB2I", 2, 2, MAX_ENTRIES, 1), "ends too early"),
        (struct.pack("<BB2Ifb", 2, 2, 1, 1, float("nan"), 1), "scale"),
        (struct.pack("<BB2Ifb", 2, 2, 1, 1, float("inf"), 0), "scale"),
        (struct.pack("<BB2Ifb", 2, 2, 1, 1, -1.0, 1), "scale"),
        (struct.pack("<BB2Ifb", 2, 2, 1, 1, 3e38, 127), "NaN or infinite"),
        (struct.pack("<BB1Ie", 1, 1, 1, float("inf")), "NaN or infinite"),
        (struct.pack("<BB1If", 0, 1, 1, float("nan")), "NaN or infinite"),
    ],
)
def test_hostile_tensors_are_refused(frame: bytes, why: str) -> None:
    with pytest.raises(RemoteProtocolError, match=why):
        read_tensor(FrameReader(frame), None)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_finite_tensor_or_refused(frame: bytes) -> None:
    try:
        values = read_tensor(FrameReader(frame), None)
    except RemoteProtocolError:
        return
    assert np.isfinite(values).all()
