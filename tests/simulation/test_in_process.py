"""Two parties in one process: the trained model gives the metric that was measured."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.door import OpenDoor
from vesper.model.evaluation import evaluate
from vesper.session.config import load_config
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train

NODES = 240


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Features that decide the class and neighbours that do not: the first stage is chosen."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, NODES)
    (tmp_path / "data").mkdir()
    (tmp_path / "label").mkdir()
    features = {f"x{k}": 3.0 * (labels == k) + rng.normal(size=NODES) for k in range(3)}
    pq.write_table(pa.table({"id": range(NODES), **features}), tmp_path / "data" / "nodes.parquet")
    pairs = rng.integers(0, NODES, (400, 2))
    edges = {"src": pairs[:, 0], "dst": pairs[:, 1]}
    pq.write_table(pa.table(edges), tmp_path / "data" / "edges.parquet")
    split = [("train", "val", "test")[k % 3] for k in range(NODES)]
    table = {"id": range(NODES), "label": labels, "split": split}
    pq.write_table(pa.table(table), tmp_path / "label" / "labels.parquet")
    return tmp_path


@pytest.mark.parametrize("method", ["gap", "progap", "certified", "mlp", "gin"])
def test_embeddings_after_training_are_those_of_the_chosen_stage(
    folders: Path, method: str
) -> None:
    data, labels = open_data(folders / "data"), open_labels(folders / "label")
    settings = {"method": method, "epochs": 8, "width": 8, "epsilon": float("inf"), "seed": 1}
    config = load_config(None, settings)
    trained = train(run_spec_for(config, data, labels), data, labels, OpenDoor(data.graph))
    if method == "gap":
        assert trained.best_stage == 0
    rows = labels.rows("test")
    nodes = data.ids.find_texts([str(text) for text in labels.ids.take(rows)])
    trained.data_side.module.eval()
    trained.label_side.module.eval()
    embeddings = trained.data_side.embed(nodes, training=False)
    scores = trained.label_side.decode(embeddings, trained.best_stage).detach().double().numpy()
    measured = trained.stages[trained.best_stage]["test"]
    assert evaluate(scores, labels.labels[rows]) == pytest.approx(measured, abs=2.0)
