"""What noise allows, next to what is published: the figure of erratum 16.

    python -m benchmarks.reach --figure docs/figures/reach.svg [--measure --out DIR]

Draws, against epsilon, the published trade-off of the paper, the bound and the oracle
(`vesper.study.class_bound`, `class_oracle`), and our own runs. With `--measure`, runs the paper's
method at full noise on small simulated graphs, with D = 20 (D_min = 10, width 128), and appends to
`benchmarks/reach.csv`, where a stopped run resumes. Epsilon of a run is the one that Theorem 1
claims for that noise on the smaller graph.
"""

import argparse
import csv
import math
from collections.abc import Iterator
from pathlib import Path

from vesper.drawing.sheet import Curve, Panel, draw_sheet
from vesper.mechanism.reference.gcn import eta
from vesper.privacy.accounting.theorem_1 import PaperTraining, claimed_epsilon
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate
from vesper.study.class_bound import gcn_bound, gin_bound
from vesper.study.class_oracle import oracle_accuracy, oracle_setting
from vesper.study.paper_nodes import PAPER_NODES, PaperNodes
from vesper.study.presets import published_scores
from vesper.study.sets import KNOWN, find_sources, make_folders

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
GCN_DEGREES = ((20, 10), (20, 20), (50, 10), (50, 20), (50, 40))
"""D and D_min over which the paper tunes."""
MEASURED = Path(__file__).with_name("reach.csv")
MEASURED_DEGREES = 20, 10
MEASURED_EPSILONS = (1.0, 4.0, 32.0)
MEASURED_WIDTH = 128
COLUMNS = ("dataset", "method", "epsilon", "noise_std", "test", "seconds")

Points = dict[float, tuple[float, float]]


def bounds(nodes: PaperNodes, aggregator: str, shares: str) -> Points:
    """Bound of the most permissive configuration that the paper tunes over."""
    classes = nodes.class_shares()[shares]

    def bound(epsilon: float) -> float:
        if aggregator == "gin":
            return max(
                gin_bound(nodes, classes, epsilon=epsilon, max_degree=degree, all_full=False)
                for degree in (20, 50)
            )
        return max(
            gcn_bound(
                nodes,
                classes,
                epsilon=epsilon,
                max_degree=max_degree,
                min_degree=min_degree,
                senders="edge-ends",
            )
            for max_degree, min_degree in GCN_DEGREES
        )

    return {epsilon: (100 * bound(epsilon), math.nan) for epsilon in EPSILONS}


def oracle(nodes: PaperNodes) -> Points:
    """Class oracle of the GIN with D = 20."""
    points: Points = {}
    for epsilon in EPSILONS:
        noise_std = nodes.noise_std(epsilon=epsilon, max_degree=20, layer_sensitivity=math.sqrt(2))
        setting = oracle_setting(
            nodes, nodes.class_shares()["assumed"], noise_std=noise_std, max_degree=20
        )
        points[epsilon] = 100 * oracle_accuracy(setting), math.nan
    return points


def ours(dataset: str, aggregator: str) -> Points:
    """Our runs at the published noise."""
    return {
        float(row["epsilon"]): (float(row["test"]), math.nan)
        for row in measured_rows()
        if (row["dataset"], row["method"]) == (dataset, f"paper-{aggregator}")
    }


def measured_rows() -> list[dict[str, str]]:
    """Rows measured so far."""
    with MEASURED.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def panels() -> Iterator[Panel]:
    """One panel per set and aggregator."""
    published = published_scores("trade-off")
    for name, nodes in PAPER_NODES.items():
        for aggregator in ("gin", "gcn"):
            series = f"VESPER({aggregator.upper()})"
            printed = {
                epsilon: (published[name, series, epsilon].mean, math.nan) for epsilon in EPSILONS
            }
            curves = [
                Curve(
                    name="bound, classes as assumed",
                    color=1,
                    points=bounds(nodes, aggregator, "assumed"),
                ),
                Curve(
                    name="bound, fewest classes",
                    color=5,
                    points=bounds(nodes, aggregator, "concentrated"),
                ),
                Curve(
                    name="ours at this noise, small graph",
                    color=0,
                    points=ours(name, aggregator),
                    published=printed,
                ),
            ]
            if aggregator == "gin":
                curves.insert(2, Curve(name="class oracle", color=2, points=oracle(nodes)))
            yield Panel(title=f"{KNOWN[name].title}, {aggregator.upper()}", curves=curves)


def measure(out: Path) -> Iterator[dict[str, object]]:
    """Run the paper's method at full noise on small simulated graphs."""
    max_degree, min_degree = MEASURED_DEGREES
    done = {(row["dataset"], row["method"], float(row["epsilon"])) for row in measured_rows()}
    for name, nodes in PAPER_NODES.items():
        source = find_sources([name], data=None, small=True)[name]
        folder = make_folders(source, out / "data")
        model, known = nodes.model, KNOWN[name]
        num_train = round(model.num_train * known.small_nodes / model.num_nodes)
        for aggregator, sensitivity in (("gin", math.sqrt(2)), ("gcn", eta(min_degree))):
            for epsilon in MEASURED_EPSILONS:
                if (name, f"paper-{aggregator}", epsilon) in done:
                    continue
                noise_std = nodes.noise_std(
                    epsilon=epsilon, max_degree=max_degree, layer_sensitivity=sensitivity
                )
                training = PaperTraining(
                    num_train_nodes=num_train,
                    batch_size=32,
                    max_degree=max_degree,
                    num_layers=2,
                    num_epochs=nodes.dataset.num_epochs,
                    edge_sensitivity=sensitivity,
                )
                given = {
                    "method": f"paper-{aggregator}",
                    "epsilon": claimed_epsilon(
                        training=training, noise_std=noise_std, delta=nodes.dataset.delta
                    ),
                    "max_degree": max_degree,
                    "min_degree": min_degree,
                    "width": MEASURED_WIDTH,
                }
                config = load_config(None, given, preset=name)
                result = simulate(folder, config, out / f"{name}-{aggregator}-{epsilon:g}")
                yield {
                    "dataset": name,
                    "method": given["method"],
                    "epsilon": f"{epsilon:g}",
                    "noise_std": f"{result.privacy.noise_stds[0]:.4f}",
                    "test": f"{result.test:.2f}",
                    "seconds": f"{result.seconds:.0f}",
                }


def main() -> None:
    """Draw the figure, or measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--out", type=Path)
    request = parser.parse_args()
    if request.measure:
        for row in measure(request.out):
            with MEASURED.open("a", encoding="utf-8") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(row)
    if request.figure:
        sheet = draw_sheet(
            list(panels()),
            title="What the published noise allows, and what is published",
            steps=EPSILONS,
            step_name="claimed epsilon",
            columns=2,
        )
        request.figure.write_text(sheet, encoding="utf-8")


if __name__ == "__main__":
    main()
