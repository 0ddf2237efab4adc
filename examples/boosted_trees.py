"""Export: the label party trains boosted trees on released features, without and with the graph.

python examples/boosted_trees.py [FOLDER]        needs scikit-learn: pip install 'vesper[examples]'
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import vesper
from vesper.datasets.finance import simulate_finance
from vesper.export.writer import export_features
from vesper.privacy.ledger.statement import verify_file


def release_at_the_data_party(folder: Path) -> Path:
    """Train stage by stage, charge the ledger, and write the file with its statement."""
    config = vesper.load_config(None, {"epsilon": 8.0, "epochs": 6})
    name, ledger = "payments-2026-11", folder / "ledger.sqlite"
    out = folder / "released.parquet"
    return export_features(folder, config, out, graph_name=name, ledger=ledger).file


def train_at_the_label_party(released: Path, labels: Path) -> dict[str, float]:
    """Join released features with labels, and compare trees on two sets of columns."""
    facts = verify_file(released)
    print(f"statement: epsilon {facts['epsilon']:g}, delta {facts['delta']:g}")
    table = pq.read_table(released).join(pq.read_table(labels), "id", join_type="inner")
    split, label = (np.asarray(table[name].to_pylist()) for name in ("split", "label"))
    names = [name for name in table.column_names if name not in ("id", "split", "label")]
    chosen = {
        "without the graph": [name for name in names if name.startswith("stage0_")],
        "with the graph": names,
    }
    results = {}
    for title, columns in chosen.items():
        features = np.column_stack([table[name].to_numpy() for name in columns])
        results[title] = train(features, label, split)
        print(f"{title:18s} ROC-AUC {100 * results[title]:.1f}  ({len(columns)} columns)")
    return results


def train(
    features: NDArray[np.float32], label: NDArray[np.int64], split: NDArray[np.str_]
) -> float:
    """Fit on training nodes; return the area under the ROC curve on test nodes."""
    trees = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=80, max_leaf_nodes=8, min_samples_leaf=40, random_state=0
    )
    trees.fit(features[split == "train"], label[split == "train"])
    scores = trees.predict_proba(features[split == "test"])[:, 1]
    return roc_auc_score(label[split == "test"], scores)


def main(folder: Path) -> dict[str, float]:
    """Run both parties, one after the other."""
    simulate_finance(folder / "finance", num_nodes=4_000, seed=1)
    released = release_at_the_data_party(folder / "finance")
    return train_at_the_label_party(released, folder / "finance" / "label" / "labels.parquet")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
