"""One small pair of party folders, and runs of several methods on it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

NODES, CLASSES = 240, 3

MakeRun = Callable[..., Path]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three communities, weak features, about eight neighbours, most in the same community."""
    root = tmp_path_factory.mktemp("attacked")
    rng = np.random.default_rng(0)
    labels = np.arange(NODES) % CLASSES
    features = rng.normal(size=(NODES, 6)) + 0.5 * np.eye(6)[labels]
    src = rng.integers(0, NODES, size=4 * NODES)
    same = rng.integers(0, NODES // CLASSES, size=4 * NODES) * CLASSES + labels[src]
    dst = np.where(rng.random(4 * NODES) < 0.8, same, rng.integers(0, NODES, size=4 * NODES))
    (root / "data").mkdir()
    (root / "label").mkdir()
    columns = {f"f{k}": features[:, k].astype(np.float32) for k in range(6)}
    pq.write_table(pa.table({"id": np.arange(NODES), **columns}), root / "data" / "nodes.parquet")
    pq.write_table(pa.table({"src": src, "dst": dst}), root / "data" / "edges.parquet")
    splits = rng.permutation(["train"] * 120 + ["val"] * 60 + ["test"] * 60)
    table = {"id": np.arange(NODES), "label": labels, "split": splits}
    pq.write_table(pa.table(table), root / "label" / "labels.parquet")
    return root


@pytest.fixture(scope="session")
def make_run(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Simulate with given settings, once for equal settings."""
    runs: dict[str, Path] = {}

    def make(**settings: object) -> Path:
        name = str(sorted(settings.items()))
        if name not in runs:
            out = tmp_path_factory.mktemp("runs") / "run"
            small = {"epochs": 2, "width": 16, "batch_size": 60, "learning_rate": 0.01}
            simulate(folders, load_config(None, {**small, **settings}), out)
            runs[name] = out
        return runs[name]

    return make
