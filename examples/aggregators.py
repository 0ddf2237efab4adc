"""Which way of weighting neighbours is worth its noise? Six aggregators at one epsilon.

python examples/aggregators.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import vesper
from vesper.datasets.block_model.published_graphs import REDDIT_LIKE
from vesper.datasets.block_model.simulate_graph import simulate as simulate_communities

AGGREGATORS = ("gin", "gcn", "gcn-clamped", "mean", "gat", "max")


def main(folder: Path) -> dict[str, float]:
    """Train with each aggregator and choose one on validation nodes."""
    simulate_communities(REDDIT_LIKE, folder / "parties", num_nodes=1_500)
    accuracies = {}
    for aggregator in AGGREGATORS:
        settings = {"aggregator": aggregator, "epsilon": 4.0, "min_degree": 20, "epochs": 10}
        config = vesper.load_config(None, settings)
        result = vesper.simulate(folder / "parties", config, folder / aggregator)
        accuracies[aggregator] = result.validation
        print(
            f"{aggregator:11s}  noise {result.privacy.noise_stds[0]:.2f} per release  "
            f"accuracy {result.validation:.1f} on validation, {result.test:.1f} on test nodes"
        )
    print(f"on validation nodes, {max(accuracies, key=accuracies.__getitem__)} is best")
    return accuracies


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
