"""From transactions to party folders: `transfers` become edges, `activity` becomes features.

    node      a user in a window, `<user>@train` or `<user>@test`, who had activity there or a label
    edge      at least one transfer between two nodes of the same window
    features  155 summaries of a node's activity, none of them from transfers
    split     test for the test window; val for a seeded share of the train window; otherwise train

With `separate_windows`, each window becomes a folder and hence its own graph, and a seeded share of
the train window also has the split test. Otherwise the graph is the disjoint union of the graphs of
both windows. Either way, an edge in the train window and an edge in the test window are two
records. Tables may be larger than memory; they are read by DuckDB.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vesper.datasets.folders import new_folder
from vesper.datasets.prepare.activity_features import (
    NUM_CHANNELS,
    NUM_FEATURES,
    NUM_TYPES,
    choose_slots,
)
from vesper.datasets.prepare.database import Windows, number, scratch_database
from vesper.datasets.prepare.nodes import (
    count_words,
    load_activity,
    load_edges,
    load_labels,
    make_nodes,
)
from vesper.datasets.prepare.output_tables import write_edges, write_labels, write_nodes
from vesper.datasets.prepare.windows import parse_windows, split_windows
from vesper.errors import InputError
from vesper.progress import Progress, no_progress

VALIDATION_SHARE = 0.0626
"""Share of the train window's labels with split `val`, as in the paper's Finance data set."""

SEPARATE_TEST_SHARE = 0.2
"""Share of the train window's labels with split `test` if windows are separate graphs."""


@dataclass(frozen=True)
class SourceTables:
    """The tables to prepare, as `prepare` describes them."""

    transfers: Path
    activity: Path
    labels: Path


@dataclass(frozen=True)
class PreparationSummary:
    """Counts of what `prepare` made and of what it left out."""

    nodes: int
    edges: int
    features: int
    train: int
    """Labelled nodes with split `train`."""
    val: int
    test: int
    activity_outside: int
    """Activity rows in neither window."""
    labels_outside: int
    transfers_outside: int
    self_transfers: int
    transfers_dropped: int
    """Transfers inside a window with an end that is not a node of it."""

    @property
    def labelled(self) -> int:
        """Nodes with a label, whatever their split."""
        return self.train + self.val + self.test


def prepare(  # noqa: PLR0913 (the options of `vesper prepare`, all by name)
    *,
    transfers: Path,
    activity: Path,
    labels: Path,
    train_window: str,
    test_window: str,
    out: Path,
    validation_share: float = VALIDATION_SHARE,
    seed: int = 0,
    transfer_columns: Sequence[str] = (),
    separate_windows: bool = False,
    progress: Progress = no_progress,
) -> PreparationSummary:
    """Write `out/data/` (nodes, edges) and `out/label/` (labels with splits), whole or not at all.

    Args:
        transfers: Table of payments between users: `time`, `src`, `dst`.
        activity: Table of what users did alone: `time`, `user`, `type`, `amount`, `channel`.
        labels: Table of known classes: `id` (a user), `label`, and optionally `time`. A label with
            a time counts for the window it falls in, one without for both.
        train_window: `FROM..TO`, TO excluded: ISO dates or integers, like the column `time`.
        test_window: In the same form; the two must not overlap.
        out: A new or empty folder.
        validation_share: Share of the train window's labelled nodes with split `val`.
        seed: Seed of the choice of these nodes.
        transfer_columns: Columns of the activity table, or values of its column `type`, that you
            know come from transfers. They are refused, see `edge_free.py`.
        separate_windows: Write `out/train/` and `out/test/` instead, each with `data/` and
            `label/`: two graphs, each with its own budget.
        progress: receives progress reports.

    Raises:
        InputError: An argument or a table cannot be used. Nothing is left at `out`.
    """
    with new_folder(out) as folder:
        return prepare_into(
            folder,
            SourceTables(transfers, activity, labels),
            parse_windows(train=train_window, test=test_window),
            validation_share=validation_share,
            seed=seed,
            transfer_columns=transfer_columns,
            separate_windows=separate_windows,
            progress=progress,
        )


def prepare_into(
    folder: Path,
    tables: SourceTables,
    windows: Windows,
    *,
    validation_share: float,
    seed: int,
    transfer_columns: Sequence[str] = (),
    separate_windows: bool = False,
    progress: Progress = no_progress,
) -> PreparationSummary:
    """Do the work of `prepare` in a folder that the caller moves into place."""
    if "?" in str(folder.absolute()):  # the database reads what follows as an option
        raise InputError("out: expected a path without '?'; choose another folder")
    if not 0 <= validation_share < 1:
        raise InputError(f"validation_share: expected 0 <= share < 1, got {validation_share}")
    if seed < 0:
        raise InputError(f"seed: expected 0 or more, got {seed}")
    data, label, scratch = folder / "data", folder / "label", folder / "scratch"
    for part in (data, label, scratch):
        part.mkdir()
    with scratch_database(scratch) as connection:
        progress("reading activity", 0, 0)
        events, events_outside = load_activity(
            connection, tables.activity, windows, transfer_columns=transfer_columns
        )
        labels_outside = load_labels(connection, tables.labels, windows)
        num_nodes = make_nodes(connection, windows)
        progress("reading transfers", 0, 0)
        counts = load_edges(connection, tables.transfers, windows)
        write_nodes(
            connection,
            data / "nodes.parquet",
            num_nodes=num_nodes,
            num_events=events,
            windows=windows,
            types=choose_slots(
                count_words(connection, tables.activity, "type"), num_slots=NUM_TYPES, spare="type_"
            ),
            channels=choose_slots(
                count_words(connection, tables.activity, "channel"),
                num_slots=NUM_CHANNELS,
                spare="",
            ),
            progress=progress,
        )
        write_edges(connection, data / "edges.parquet", num_nodes=num_nodes, progress=progress)
        num_test = number(connection, "SELECT count(*) FROM labels WHERE part = 1")
        num_train = number(connection, "SELECT count(*) FROM labels WHERE part = 0")
        num_val = round(validation_share * num_train)
        num_held_out = round(SEPARATE_TEST_SHARE * num_train) if separate_windows else 0
        if num_val + num_held_out >= num_train:
            raise InputError(
                f"{tables.labels}: expected labels left to train on, found {num_train} in the "
                f"train window, all used up by validation_share={validation_share}; reduce it"
            )
        splits = np.full(num_train, "train", dtype=object)
        drawn = np.random.default_rng(seed).permutation(num_train)
        splits[drawn[:num_val]] = "val"
        splits[drawn[num_val : num_val + num_held_out]] = "test"
        write_labels(connection, label / "labels.parquet", num_nodes=num_nodes, splits=splits)
    shutil.rmtree(scratch)
    if separate_windows:
        split_windows(folder, [window.name for window in windows])
    return PreparationSummary(
        nodes=num_nodes,
        features=NUM_FEATURES,
        train=num_train - num_val - num_held_out,
        val=num_val,
        test=num_test + num_held_out,
        activity_outside=events_outside,
        labels_outside=labels_outside,
        **counts,
    )
