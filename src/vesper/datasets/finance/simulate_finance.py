"""Simulator `finance`: a payment platform shaped like the paper's Finance data set.

It writes the tables an institution would have, and makes the party folders from them with the code
of `prepare`, so that simulated and real data take the same path:

    transfers.parquet     time, src, dst, amount           money between users
    activity.parquet      time, user, type, amount, channel  what users do alone
    known_labels.parquet  id, label, time                  1 for risky, decided at a window's end
    data/, label/         the party folders that `prepare` makes from them

At full size, the numbers of nodes, edges, train nodes, features and classes are those of the
paper's table, and the degrees follow its histogram; other sizes keep the proportions.
"""

from dataclasses import dataclass
from pathlib import Path

from vesper.datasets.finance.finance_tables import write_tables
from vesper.datasets.folders import new_folder
from vesper.datasets.prepare.job import PreparationSummary, SourceTables, prepare_into
from vesper.datasets.prepare.windows import parse_windows
from vesper.errors import InputError
from vesper.progress import Progress, no_progress

NUM_NODES = 1_132_511
NUM_EDGES = 1_223_685
NUM_TRAIN_NODES = 848_963
NUM_TEST_NODES = 226_838

FEWEST_NODES = 200
"""Below this size, the test window has hardly any risky users."""

MOST_NODES = 2**31 - 1

TRAIN_WINDOW = ("2023-01-02", "2023-01-30")
TEST_WINDOW = ("2023-02-06", "2023-03-06")
"""Four weeks each, starting on a Monday, with a gap of one week."""


@dataclass(frozen=True)
class FinanceSizes:
    """Numbers of nodes and edges, (train window, test window), and of validation nodes."""

    nodes: tuple[int, int]
    edges: tuple[int, int]
    val: int

    @classmethod
    def of(cls, num_nodes: int) -> "FinanceSizes":
        """Return the sizes for `num_nodes` in the paper's proportions, rounded.

        >>> FinanceSizes.of(1_132_511).nodes[0] - FinanceSizes.of(1_132_511).val
        848963
        """
        test = round(num_nodes * NUM_TEST_NODES / NUM_NODES)
        train = round(num_nodes * NUM_TRAIN_NODES / NUM_NODES)
        edges = round(num_nodes * NUM_EDGES / NUM_NODES)
        test_edges = round(edges * test / num_nodes)
        return cls(
            nodes=(num_nodes - test, test),
            edges=(edges - test_edges, test_edges),
            val=num_nodes - test - train,
        )


def simulate_finance(
    out: Path, *, num_nodes: int = NUM_NODES, seed: int = 0, progress: Progress = no_progress
) -> PreparationSummary:
    """Write the simulated tables and the party folders made from them, whole or not at all.

    Args:
        out: A new or empty folder.
        num_nodes: Nodes of both windows together, 200 to 2^31 - 1.
        seed: Seed of all draws; the same seed gives the same bytes.
        progress: receives progress reports.

    Raises:
        InputError: `num_nodes` is out of range, or `out` cannot be used.
    """
    if not FEWEST_NODES <= num_nodes <= MOST_NODES:
        raise InputError(
            f"nodes: expected {FEWEST_NODES} to {MOST_NODES} for finance, got {num_nodes}; choose "
            f"another size"
        )
    if seed < 0:
        raise InputError(f"seed: expected 0 or more, got {seed}")
    sizes = FinanceSizes.of(num_nodes)
    with new_folder(out) as folder:
        write_tables(
            folder,
            num_nodes=sizes.nodes,
            num_edges=sizes.edges,
            starts=(TRAIN_WINDOW[0], TEST_WINDOW[0]),
            seed=seed,
            progress=progress,
        )
        return prepare_into(
            folder,
            SourceTables(
                transfers=folder / "transfers.parquet",
                activity=folder / "activity.parquet",
                labels=folder / "known_labels.parquet",
            ),
            parse_windows(train="..".join(TRAIN_WINDOW), test="..".join(TEST_WINDOW)),
            validation_share=sizes.val / sizes.nodes[0],
            seed=seed,
            progress=progress,
        )
