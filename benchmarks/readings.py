"""Two readings of the paper that add too little noise, at the noise that it publishes.

    python -m benchmarks.readings --out DIR

Runs the paper's GIN (D = 20, batches of 32, 5 epochs, width 128) on small simulated graphs and
appends rows to `benchmarks/readings.csv`, where a stopped run resumes.

| reading | noise per coordinate | weights |
| --- | --- | --- |
| per-vector | published / sqrt(width of the paper: 128 or 512) | of norm 1 |
| no-norm | published | of any norm; `norms` has their operator norms after training |
| no-noise | none | of norm 1: what these graphs allow |

Epsilon of a run is the one that Theorem 1 claims for the noise on the smaller graph; `worth` is
what the theorem claims at the paper's size for the noise that was added and the norms measured.
"""

import argparse
import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.reach import MEASURED_WIDTH

from vesper.files import read_arrays
from vesper.privacy.accounting.theorem_1 import PaperTraining, claimed_epsilon
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate
from vesper.study.paper_nodes import PAPER_NODES, PaperNodes
from vesper.study.sets import KNOWN, find_sources, make_folders

RESULTS = Path(__file__).with_name("readings.csv")
COLUMNS = ("dataset", "reading", "epsilon", "noise_std", "norms", "worth", "test", "seconds")
EPSILONS = (4.0, 32.0)
READINGS = {
    "per-vector": {"noise_reading": "per-vector"},
    "no-norm": {"spectral_norm": "none"},
    "no-noise": {},
}
MAX_DEGREE, BATCH_SIZE = 20, 32


def training_of(nodes: PaperNodes, *, num_train: int, sensitivity: float) -> PaperTraining:
    """Sizes of a run as the paper's accountant takes them."""
    return PaperTraining(
        num_train_nodes=num_train,
        batch_size=BATCH_SIZE,
        max_degree=MAX_DEGREE,
        num_layers=2,
        num_epochs=nodes.dataset.num_epochs,
        edge_sensitivity=sensitivity,
    )


def operator_norms(run: Path) -> list[float]:
    """Operator norms of the weights of both layers."""
    return [
        float(np.linalg.norm(array, ord=2))
        for name, array in sorted(read_arrays(run / "data_party.npz").items())
        if name.endswith("unit_weight.weight")
    ]


def measure(out: Path, done: set[tuple[str, str, float]]) -> Iterator[dict[str, str]]:
    """Run what is missing."""
    for name, nodes in PAPER_NODES.items():
        source = find_sources([name], data=None, small=True)[name]
        folder = make_folders(source, out / "data")
        num_train = round(nodes.model.num_train * KNOWN[name].small_nodes / nodes.model.num_nodes)
        for reading, settings in READINGS.items():
            for epsilon in EPSILONS if settings else (math.inf,):
                if (name, reading, epsilon) in done:
                    continue
                noise_std = 0.0
                if settings:
                    noise_std = nodes.noise_std(
                        epsilon=epsilon, max_degree=MAX_DEGREE, layer_sensitivity=math.sqrt(2)
                    )
                if reading == "per-vector":  # the run divides by the root of its own width
                    noise_std *= math.sqrt(MEASURED_WIDTH / nodes.width)
                small = training_of(nodes, num_train=num_train, sensitivity=math.sqrt(2))
                given = {
                    **settings,
                    "method": "paper-gin",
                    "width": MEASURED_WIDTH,
                    "epsilon": claimed_epsilon(
                        training=small, noise_std=noise_std, delta=nodes.dataset.delta
                    ),
                }
                run = out / f"{name}-{reading}-{epsilon:g}"
                result = simulate(folder, load_config(None, given, preset=name), run)
                norms = operator_norms(run) if reading == "no-norm" else [1.0, 1.0]
                whole = training_of(
                    nodes,
                    num_train=nodes.dataset.num_train_nodes,
                    sensitivity=math.sqrt(2) * math.sqrt(np.mean(np.square(norms))),
                )
                worth = claimed_epsilon(
                    training=whole,
                    noise_std=result.privacy.noise_stds[0],
                    delta=nodes.dataset.delta,
                )
                yield {
                    "dataset": name,
                    "reading": reading,
                    "epsilon": f"{epsilon:g}",
                    "noise_std": f"{result.privacy.noise_stds[0]:.4f}",
                    "norms": " ".join(f"{norm:.2f}" for norm in norms),
                    "worth": f"{worth:.4g}",
                    "test": f"{result.test:.2f}",
                    "seconds": f"{result.seconds:.0f}",
                }


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    request = parser.parse_args()
    with RESULTS.open(encoding="utf-8") as file:
        done = {
            (row["dataset"], row["reading"], float(row["epsilon"])) for row in csv.DictReader(file)
        }
    for row in measure(request.out, done):
        with RESULTS.open("a", encoding="utf-8") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)


if __name__ == "__main__":
    main()
