"""How much does the graph help? Simulated payments, with and without it, in one minute.

python examples/first_run.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import vesper
from vesper.datasets.finance import simulate_finance


def main(folder: Path) -> dict[str, vesper.Result]:
    """Make party folders, train two methods and compare them."""
    simulate_finance(folder / "finance", num_nodes=5_000, seed=1)
    results = {}
    for method in ("mlp", "certified"):
        config = vesper.load_config(None, {"method": method, "epsilon": 8.0, "epochs": 10})
        results[method] = vesper.simulate(folder / "finance", config, folder / f"run-{method}")
        print(f"{method:8s} ROC-AUC {results[method].test:.1f}  ({results[method].privacy.plan})")
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
