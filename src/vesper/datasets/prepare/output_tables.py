"""Tables of `prepare` written as party folders, one range of nodes at a time.

Ranges bound the memory and fix the row groups, so the same tables always give the same bytes.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vesper.datasets.prepare.activity_features import Events, Vocabulary, feature_names, summarise
from vesper.datasets.prepare.database import Connection, Windows
from vesper.progress import Progress

_MOST_NODES = 65_536
_MOST_EVENTS = 2_000_000


def write_nodes(
    connection: Connection,
    path: Path,
    *,
    num_nodes: int,
    num_events: int,
    windows: Windows,
    types: Vocabulary,
    channels: Vocabulary,
    progress: Progress,
) -> None:
    """Write `id` and the features of every node, in order of id."""
    _slot_table(connection, "type_slots", types)
    _slot_table(connection, "channel_slots", channels)
    connection.execute(
        "CREATE TABLE events AS SELECT n.number AS node, a.seconds, t.slot AS kind, "
        "coalesce(c.slot, -1) AS channel, a.amount FROM activity a "
        "JOIN nodes n ON a.person = n.person AND a.part = n.part "
        "JOIN type_slots t ON a.type = t.word LEFT JOIN channel_slots c ON a.channel = c.word "
        "ORDER BY node"
    )
    names = feature_names(types.slots, channels.slots)
    kinds: dict[str, pa.DataType] = {"id": pa.string(), **dict.fromkeys(names, pa.float32())}
    schema = pa.schema(kinds)
    nodes_at_once = max(1, min(_MOST_NODES, _MOST_EVENTS * num_nodes // num_events))
    starts = np.array([window.start for window in windows])
    stops = np.array([window.stop for window in windows])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for first, last in _ranges(num_nodes, nodes_at_once):
            nodes = connection.execute(
                f"SELECT id, part FROM nodes WHERE number >= {first} AND number < {last} "
                f"ORDER BY number"
            ).fetchnumpy()
            part = nodes["part"].astype(np.int64)
            events = _events(connection, first, last, starts[part], stops[part])
            features = summarise(events)  # (last - first, 155)
            columns = [pa.array(features[:, k]) for k in range(len(names))]
            ids = pa.array(nodes["id"], type=pa.string())
            writer.write_table(pa.Table.from_arrays([ids, *columns], schema=schema))
            progress("features", last, num_nodes)


def write_edges(connection: Connection, path: Path, *, num_nodes: int, progress: Progress) -> None:
    """Write `src` and `dst` of every edge, src < dst, in order."""
    schema = pa.schema([("src", pa.string()), ("dst", pa.string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for first, last in _ranges(num_nodes, _MOST_NODES):
            edges = connection.sql(
                f"SELECT src, dst FROM edges WHERE low >= {first} AND low < {last} "
                f"ORDER BY low, high"
            ).to_arrow_table()
            writer.write_table(edges.cast(schema))
            progress("edges", last, num_nodes)


def write_labels(
    connection: Connection, path: Path, *, num_nodes: int, splits: NDArray[np.object_]
) -> None:
    """Write `id`, `label` and `split` of every labelled node, in order of id.

    Args:
        connection: Connection to the scratch database.
        path: The file to write.
        num_nodes: Number of nodes, labelled or not.
        splits: Split of each labelled node of the train window, in order of id.
    """
    kinds: dict[str, pa.DataType] = {
        "id": pa.string(),
        "label": pa.int32(),
        "split": pa.string(),
    }
    schema = pa.schema(kinds)
    connection.execute(
        "CREATE TABLE labelled AS SELECT n.number, n.id, l.label, l.part FROM nodes n "
        "JOIN labels l ON n.person = l.person AND n.part = l.part ORDER BY number"
    )
    done = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for first, last in _ranges(num_nodes, _MOST_NODES):
            rows = connection.execute(
                f"SELECT id, label, part FROM labelled "
                f"WHERE number >= {first} AND number < {last} ORDER BY number"
            ).fetchnumpy()
            is_test = rows["part"] == 1
            split = np.full(len(is_test), "test", dtype=object)
            training = int((~is_test).sum())
            split[~is_test] = splits[done : done + training]
            done += training
            arrays = [
                pa.array(rows["id"], type=pa.string()),
                pa.array(rows["label"].astype(np.int32)),
                pa.array(split, type=pa.string()),
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _events(
    connection: Connection,
    first: int,
    last: int,
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> Events:
    rows = connection.execute(
        f"SELECT node - {first} AS node, seconds, kind, channel, coalesce(amount, 'nan') AS amount "
        f"FROM events WHERE node >= {first} AND node < {last} "
        f"ORDER BY node, seconds, kind, channel, amount"
    ).fetchnumpy()
    return Events(
        num_nodes=last - first,
        node=rows["node"].astype(np.int64),
        seconds=rows["seconds"].astype(np.int64),
        kind=rows["kind"].astype(np.int64),
        channel=rows["channel"].astype(np.int64),
        amount=np.asarray(rows["amount"], dtype=np.float64),
        start=start,
        stop=stop,
    )


def _slot_table(connection: Connection, name: str, vocabulary: Vocabulary) -> None:
    connection.execute(f"CREATE TABLE {name} (word VARCHAR, slot INTEGER)")
    if vocabulary.slot_of:
        connection.executemany(
            f"INSERT INTO {name} VALUES (?, ?)", [list(item) for item in vocabulary.slot_of.items()]
        )


def _ranges(total: int, at_once: int) -> Iterator[tuple[int, int]]:
    for first in range(0, total, at_once):
        yield first, min(first + at_once, total)
