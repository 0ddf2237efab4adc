"""A bank, a platform and a telecom: how much does each graph help, alone and together?

The bank holds the labels and its own graph of transfers. Each of the three graphs has an account
for its edges, and the labels have one; none of them is charged for another.

python examples/several_parties.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vesper.report.contents import contents_of_run
from vesper.report.page import write_report
from vesper.session.data_parties import load_simulation
from vesper.simulation.simulate import simulate

PEOPLE, CLASSES = 1_200, 4
PARTIES = {
    "platform": '[[data_party]]\nname = "platform"\nepsilon = 4.0\n',
    "telecom": '[[data_party]]\nname = "telecom"\nepsilon = 2.0\n',
    "transfers": '[[data_party]]\nname = "transfers"\nown = true\nepsilon = 4.0\n',
}
SETTINGS = "[privacy]\nhops = 1\nlabel_epsilon = 4.0\n\n[run]\nepochs = 10\n\n"


def make_graphs(folder: Path) -> None:
    """Write folders of the same people with three different graphs."""
    random = np.random.default_rng(2)
    labels = random.integers(0, CLASSES, PEOPLE)
    by_label = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_label], np.arange(CLASSES + 1))
    for name in PARTIES:
        (folder / name).mkdir(parents=True)
        features = random.normal(size=(PEOPLE, 2)) + 0.4 * np.eye(CLASSES)[labels][:, :2]
        nodes = {"id": range(PEOPLE), "x0": features[:, 0], "x1": features[:, 1]}
        pq.write_table(pa.table(nodes), folder / name / "nodes.parquet")
        src = np.repeat(np.arange(PEOPLE), 8)
        own = by_label[random.integers(starts[labels[src]], starts[labels[src] + 1])]
        dst = np.where(random.random(len(src)) < 0.6, own, random.integers(0, PEOPLE, len(src)))
        pq.write_table(pa.table({"src": src, "dst": dst}), folder / name / "edges.parquet")
    (folder / "label").mkdir()
    split = random.choice(["train", "val", "test"], PEOPLE, p=[0.5, 0.25, 0.25])
    table = {"id": range(PEOPLE), "label": labels, "split": split}
    pq.write_table(pa.table(table), folder / "label" / "labels.parquet")


def main(folder: Path) -> dict[str, float]:
    """Train with each graph alone and then with all; write a report of the last run."""
    make_graphs(folder / "parties")
    choices = {name: [name] for name in PARTIES} | {"together": list(PARTIES)}
    results = {}
    for name, parties in choices.items():
        settings = folder / f"{name}.toml"
        settings.write_text(SETTINGS + "\n".join(PARTIES[party] for party in parties))
        config, listed = load_simulation(settings, {})
        result = simulate(folder / "parties", config, folder / name, parties=listed)
        results[name] = result.test
        budgets = [f"{each.name} {each.privacy.certified_epsilon:g}" for each in result.parties]
        print(f"{name:10s} accuracy {result.test:.1f}   epsilon: {', '.join(budgets)}")
    write_report(contents_of_run(folder / "together"), folder / "together.html")
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
