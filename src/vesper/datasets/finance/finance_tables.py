"""Tables of the simulated platform: transfers, activity and known labels.

A user can be in both windows: 30 % of the users of the test window were in the train window, with
the same habits. Risk is drawn anew for each window. As in real data, a few transfers belong to no
edge: those between the windows, to oneself, or with an unknown user.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vesper.datasets.finance.activity import (
    CHANNELS,
    NUM_HABITS,
    ORGANISER_SHIFT,
    RISKY_SHIFT,
    TYPES,
    draw_activity,
)
from vesper.datasets.finance.transfers import PaymentGraph, draw_graph
from vesper.progress import Progress

NUM_DAYS = 28
RISKY_SHARE = 0.08
RETURNING_SHARE = 0.3
STRAY_SHARE = 0.01
"""Number of transfers of each kind that makes no edge, as a share of the edges."""

_DAY = 86_400
_DAYS_BETWEEN = 7  # after the train window, before the test window
_NODES_AT_ONCE = 65_536
_TIME = pa.timestamp("s", tz="UTC")
_CATEGORY = pa.dictionary(pa.int8(), pa.string())
_TRANSFER_COLUMNS: dict[str, pa.DataType] = {
    "time": _TIME,
    "src": pa.int64(),
    "dst": pa.int64(),
    "amount": pa.float64(),
}
_ACTIVITY_COLUMNS: dict[str, pa.DataType] = {
    "time": _TIME,
    "user": pa.int64(),
    "type": _CATEGORY,
    "amount": pa.float64(),
    "channel": _CATEGORY,
}
_LABEL_COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "label": pa.int32(), "time": _TIME}
_TRANSFERS = pa.schema(_TRANSFER_COLUMNS)
_ACTIVITY = pa.schema(_ACTIVITY_COLUMNS)
_LABELS = pa.schema(_LABEL_COLUMNS)

Ints = NDArray[np.int64]
Pair = tuple[int, int]


def write_tables(
    folder: Path,
    *,
    num_nodes: Pair,
    num_edges: Pair,
    starts: tuple[str, str],
    seed: int,
    progress: Progress,
) -> None:
    """Write the three tables.

    Args:
        folder: Folder to write to.
        num_nodes: Nodes of the train and of the test window.
        num_edges: Edges of the train and of the test window.
        starts: First day of each window.
        seed: Seed from which separate streams for users and for each window are derived.
        progress: receives progress reports.
    """
    rng = np.random.default_rng([seed, 0])
    returning = round(RETURNING_SHARE * num_nodes[1])
    num_users = sum(num_nodes) - returning
    users = rng.permutation(num_users) + 1  # (num_users,)
    habits = rng.standard_normal((num_users, NUM_HABITS), dtype=np.float32)
    windows = (np.arange(num_nodes[0]), np.arange(num_nodes[0] - returning, num_users))
    with (
        pq.ParquetWriter(folder / "transfers.parquet", _TRANSFERS) as transfers,
        pq.ParquetWriter(folder / "activity.parquet", _ACTIVITY) as activity,
        pq.ParquetWriter(folder / "known_labels.parquet", _LABELS) as labels,
    ):
        done = 0
        for part, people in enumerate(windows):
            rng = np.random.default_rng([seed, 1, part])
            people = rng.permutation(people)  # node -> user; returning users can be any nodes
            start = int(np.datetime64(starts[part], "s").astype(np.int64))
            num_risky = max(2, round(RISKY_SHARE * len(people)))
            progress("transfers", part, len(windows))
            graph = draw_graph(len(people), num_edges=num_edges[part], num_risky=num_risky, rng=rng)
            ids = users[people]
            transfers.write_table(_transfers(graph, ids, num_users, start, rng))
            labels.write_table(_labels(ids, num_risky, start + NUM_DAYS * _DAY - 1))
            tint = rng.standard_normal(len(people))
            tint[:num_risky] += RISKY_SHIFT
            tint[graph.organisers] += ORGANISER_SHIFT - RISKY_SHIFT
            for first in range(0, len(people), _NODES_AT_ONCE):
                some = slice(first, first + _NODES_AT_ONCE)
                activity.write_table(
                    _activity(ids[some], tint[some], habits[people[some]], start, rng)
                )
                done += len(ids[some])
                progress("activity", done, sum(num_nodes))


def _transfers(
    graph: PaymentGraph, ids: Ints, num_users: int, start: int, rng: np.random.Generator
) -> pa.Table:
    """Draw one or more transfers per edge, in either direction, and a few that make no edge."""
    times = rng.geometric(0.6, len(graph.low))
    ends = np.repeat(np.stack([ids[graph.low], ids[graph.high]]), times, axis=1)  # (2, n)
    ends = rng.permuted(ends, axis=0)
    stray = max(1, round(STRAY_SHARE * len(graph.low)))
    anyone = rng.choice(ids, (4, stray))
    unknown = num_users + 1 + rng.integers(stray, size=stray)
    after = NUM_DAYS * _DAY + rng.integers(_DAYS_BETWEEN * _DAY, size=stray)
    inside = rng.integers(NUM_DAYS * _DAY, size=ends.shape[1] + 2 * stray)
    columns = [
        pa.array(start + np.concatenate([inside, after])).cast(_TIME),
        pa.array(np.concatenate([ends[0], anyone[0], anyone[1], anyone[2]])),
        pa.array(np.concatenate([ends[1], anyone[0], unknown, anyone[3]])),
        pa.array(np.round(rng.lognormal(4.0, 1.2, size=len(inside) + stray), 2)),
    ]
    return pa.Table.from_arrays(columns, schema=_TRANSFERS)


def _labels(ids: Ints, num_risky: int, seconds: int) -> pa.Table:
    label = (np.arange(len(ids)) < num_risky).astype(np.int32)
    decided = pa.array(np.full(len(ids), seconds)).cast(_TIME)
    return pa.Table.from_arrays([pa.array(ids), pa.array(label), decided], schema=_LABELS)


def _activity(
    ids: Ints,
    tint: NDArray[np.float64],
    habits: NDArray[np.float32],
    start: int,
    rng: np.random.Generator,
) -> pa.Table:
    events = draw_activity(tint, habits.astype(np.float64), num_days=NUM_DAYS, rng=rng)
    columns: list[pa.Array[Any]] = [
        pa.array(start + events.seconds).cast(_TIME),
        pa.array(ids[events.user]),
        pa.DictionaryArray.from_arrays(events.kind.astype(np.int8), list(TYPES)),
        pa.array(events.amount, mask=np.isnan(events.amount)),
        pa.DictionaryArray.from_arrays(events.channel.astype(np.int8), list(CHANNELS)),
    ]
    return pa.Table.from_arrays(columns, schema=_ACTIVITY)
