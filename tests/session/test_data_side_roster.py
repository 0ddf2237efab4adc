"""Limits on the rosters and models that the data party accepts."""

import numpy as np
import pyarrow as pa
import pytest

from vesper.errors import RemoteProtocolError
from vesper.graph.ids import Ids
from vesper.graph.table_source import Column
from vesper.protocol.codec import MAX_FRAME_BYTES, encode
from vesper.protocol.messages import Roster
from vesper.session.data_side import physical_memory, refuse_outputs, roster_limits

GIB = 1 << 30


@pytest.mark.parametrize(
    ("outputs", "num_nodes"), [(0, 10), (1 << 17, 10), (1 << 16, 10_000_000), (100, 10**9)]
)
def test_a_model_that_does_not_fit_is_refused(outputs: int, num_nodes: int) -> None:
    with pytest.raises(RemoteProtocolError, match=f"a model with {outputs} outputs"):
        refuse_outputs(outputs, num_nodes=num_nodes, memory=64 * GIB)


def test_a_model_that_fits_is_accepted() -> None:
    refuse_outputs(47, num_nodes=2_449_029, memory=8 * GIB)
    refuse_outputs(2, num_nodes=1000)
    assert physical_memory() > GIB // 4


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([-(2**63), 5, 2**63 - 1], type=pa.int64()),
        pa.array(["ä" * 50, "b", "ccc"], type=pa.large_string()),
    ],
)
def test_a_roster_of_all_nodes_is_within_the_limits(ids: Column) -> None:
    texts = tuple(str(text) for text in ids.to_pylist())
    roster = Roster(texts, (), (), np.ones((3, 4), dtype=np.float32))
    limits = roster_limits(Ids(ids), outputs=4)
    assert len(encode(roster)) <= limits.frame
    assert limits.ids == 3
    longer = Roster(texts * 3, (), (), np.ones((9, 4), dtype=np.float32))
    assert len(encode(longer)) > limits.frame or limits.ids < 9


def test_the_frame_limit_is_never_larger_than_the_largest_frame() -> None:
    ids = Ids(pa.array(["x" * 100, "y"], type=pa.large_string()))
    assert roster_limits(ids, outputs=MAX_FRAME_BYTES).frame == MAX_FRAME_BYTES
