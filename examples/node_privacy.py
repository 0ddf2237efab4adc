"""Protect one edge or all edges of a person? Train both ways, and audit both for a whole person.

python examples/node_privacy.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import vesper
from vesper.audit.command import run_audit

NODES, FRIENDS, EPSILON = 1_500, 12, 8.0


def make_communities(folder: Path) -> None:
    """Write party folders: two communities, with at most FRIENDS friends per person."""
    random = np.random.default_rng(1)
    labels = np.arange(NODES) % 2
    for side in ("data", "label"):
        (folder / side).mkdir(parents=True)
    features = random.normal(size=(NODES, 4)) + 0.4 * labels[:, None]
    columns = {f"x{k}": features[:, k] for k in range(4)}
    pq.write_table(pa.table({"id": range(NODES), **columns}), folder / "data" / "nodes.parquet")
    order = [random.permutation(np.flatnonzero(labels == own)) for own in (0, 1)]
    circle = np.stack(order)  # (2, NODES / 2): a ring of each community
    steps = range(1, FRIENDS // 2 + 1)
    src = np.concatenate([circle.ravel() for _ in steps])
    dst = np.concatenate([np.roll(circle, -step, axis=1).ravel() for step in steps])
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "data" / "edges.parquet")
    split = random.choice(["train", "val", "test"], NODES, p=[0.5, 0.25, 0.25])
    table = {"id": range(NODES), "label": labels, "split": split}
    pq.write_table(pa.table(table), folder / "label" / "labels.parquet")


def main(folder: Path) -> dict[str, float]:
    """Train without the graph, with its edges protected, and with its nodes protected."""
    make_communities(folder / "parties")
    shared: dict[str, object] = {"epsilon": EPSILON, "hops": 1, "max_degree": FRIENDS, "seed": 1}
    variants: dict[str, dict[str, object]] = {
        "no edge is read": {"method": "mlp"},
        "edges protected": {"privacy_unit": "edge"},
        "nodes protected": {"privacy_unit": "node"},
    }
    results = {}
    for name, settings in variants.items():
        config = vesper.load_config(None, {**shared, **settings, "epochs": 15})
        result = vesper.simulate(folder / "parties", config, folder / name.replace(" ", "-"))
        results[name] = result.test
        print(f"{name}: AUC {result.test:.1f}")
    for unit in ("edge", "node"):
        leak = run_audit({**shared, "privacy_unit": unit}, trials=8, canaries=10, unit="node")
        print(
            f"a run that protects one {unit} with epsilon {EPSILON:g} leaks at least epsilon "
            f"{leak.epsilon_lower_bound:.2g} about one node: {leak.verdict}"
        )
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
