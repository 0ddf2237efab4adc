"""What does it cost to protect labels from the platform? Simulated communities, both ways.

python examples/protected_labels.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vesper
from vesper.attack.label_inference import attack_labels

NODES, CLASSES, FRIENDS = 1_200, 4, 20


def make_communities(folder: Path) -> None:
    """Write party folders: weak features, friends mostly from the same community."""
    random = np.random.default_rng(1)
    labels = random.integers(0, CLASSES, NODES)
    for side in ("data", "label"):
        (folder / side).mkdir(parents=True)
    features = random.normal(size=(NODES, CLASSES)) + 0.5 * np.eye(CLASSES)[labels]
    columns = {f"x{k}": features[:, k] for k in range(CLASSES)}
    pq.write_table(pa.table({"id": range(NODES), **columns}), folder / "data" / "nodes.parquet")
    src = np.repeat(np.arange(NODES), FRIENDS // 2)
    by_label = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_label], np.arange(CLASSES + 1))
    own = by_label[random.integers(starts[labels[src]], starts[labels[src] + 1])]
    dst = np.where(random.random(len(src)) < 0.7, own, random.integers(0, NODES, len(src)))
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "data" / "edges.parquet")
    split = random.choice(["train", "val", "test"], NODES, p=[0.5, 0.25, 0.25])
    table = {"id": range(NODES), "label": labels, "split": split}
    pq.write_table(pa.table(table), folder / "label" / "labels.parquet")


def main(folder: Path) -> dict[str, tuple[float, float]]:
    """Train with open and with protected labels, and attack both runs."""
    make_communities(folder / "parties")
    results = {}
    for name, label_epsilon in (("open", None), ("protected", 2.0)):
        settings = {"epsilon": 4.0, "label_epsilon": label_epsilon, "epochs": 10}
        config = vesper.load_config(None, settings)
        result = vesper.simulate(folder / "parties", config, folder / name)
        guessed = attack_labels(folder / name, folder / "parties").roc.auc
        results[name] = result.test, guessed
        print(
            f"labels {name:9s}  accuracy {result.test:.1f}  "
            f"AUC of the platform's guesses {guessed:.2f}"
        )
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
