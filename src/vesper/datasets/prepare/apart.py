"""Two windows in one folder -> a folder each: two graphs, two snapshots.

    data/, label/   ->   train/data/, train/label/, test/data/, test/label/

A node of a window has the window's name behind the `@` of its id, and an edge joins two nodes of
one window, so that every row belongs to one.
"""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

TABLES = (
    ("data/nodes.parquet", "id"),
    ("data/edges.parquet", "src"),
    ("label/labels.parquet", "id"),
)
"""Each with a column that names the window."""


def part_windows(folder: Path, names: Sequence[str]) -> None:
    """Part the tables of a folder that holds all windows; they are gone from it afterwards.

    Args:
        folder: holds `data/` and `label/`.
        names: of the windows; each becomes a folder in it.
    """
    for path, column in TABLES:
        with ExitStack() as stack:
            source = stack.enter_context(pq.ParquetFile(folder / path))
            writers = {}
            for name in names:
                out = folder / name / path
                out.parent.mkdir(parents=True, exist_ok=True)
                writer = pq.ParquetWriter(out, source.schema_arrow, compression="zstd")
                writers[name] = stack.enter_context(writer)
            for group in range(source.num_row_groups):
                rows = source.read_row_group(group)
                for name, writer in writers.items():
                    writer.write_table(rows.filter(pc.ends_with(rows[column], f"@{name}")))
    for path, _ in TABLES:
        shutil.rmtree((folder / path).parent, ignore_errors=True)
