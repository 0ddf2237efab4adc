"""Train on the payments of January and predict on those of February: two graphs, two budgets.

python examples/temporal_snapshots.py [FOLDER]
"""

import sys
import tempfile
from contextlib import closing
from pathlib import Path

import vesper
from vesper.datasets.finance import simulate_finance
from vesper.datasets.finance.simulate_finance import TEST_WINDOW, TRAIN_WINDOW
from vesper.datasets.prepare.job import prepare
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read

USERS, EPSILON = 8_000, 4.0


def make_windows(folder: Path) -> tuple[Path, Path]:
    """Simulate transfers and make a graph for each window, `train` and `test`."""
    payments = folder / "payments"
    simulate_finance(payments, num_nodes=USERS, seed=1)
    prepare(
        transfers=payments / "transfers.parquet",
        activity=payments / "activity.parquet",
        labels=payments / "known_labels.parquet",
        train_window="..".join(TRAIN_WINDOW),
        test_window="..".join(TEST_WINDOW),
        out=folder / "windows",
        separate_windows=True,
    )
    return folder / "windows" / "train", folder / "windows" / "test"


def main(folder: Path) -> dict[str, tuple[float, float]]:
    """Train without and with the graph; evaluate both on test nodes of each window."""
    january, february = make_windows(folder)
    results = {}
    for method in ("mlp", "certified"):
        config = vesper.load_config(None, {"method": method, "epsilon": EPSILON, "epochs": 30})
        result = vesper.simulate(january, config, folder / method, snapshots=[february])
        results[method] = result.test, result.snapshots[0].test
        print(f"{method:8s}", *(f"AUC {auc:.1f}" for auc in results[method]), sep="   ")
    with closing(open_to_read(folder / "certified" / "ledger.sqlite")) as ledger:
        for graph in accounts(ledger):
            spent = f"epsilon {graph.spent_epsilon():.3g} spent in {graph.releases} releases"
            print(f"graph {graph.graph} of {len(graph.spent):,} nodes: {spent}")
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
