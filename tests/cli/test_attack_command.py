"""`vesper attack` on the command line."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from vesper.cli.app import app


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring of 90 nodes, three classes."""
    root = tmp_path_factory.mktemp("parties")
    rng, ids = np.random.default_rng(0), np.arange(90)
    (root / "data").mkdir()
    (root / "label").mkdir()
    features = {f"f{k}": rng.normal(size=90).astype(np.float32) for k in range(4)}
    pq.write_table(pa.table({"id": ids, **features}), root / "data" / "nodes.parquet")
    edges = {"src": np.tile(ids, 2), "dst": np.concatenate([(ids + 1) % 90, (ids + 3) % 90])}
    pq.write_table(pa.table(edges), root / "data" / "edges.parquet")
    splits = ["train", "val", "test"] * 30
    table = {"id": ids, "label": rng.integers(0, 3, size=90), "split": splits}
    pq.write_table(pa.table(table), root / "label" / "labels.parquet")
    settings = ["--set", "epochs=1", "--set", "width=8", "--epsilon", "8"]
    arguments = ["simulate", "--data", str(root), "--out", str(root / "run"), *settings]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return root


def attack(parties: Path, *arguments: str) -> str:
    given = ["--run", str(parties / "run"), "--data", str(parties)]
    done = CliRunner().invoke(app, ["attack", *arguments, *given], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize(
    "name", ["node-membership", "edge-likelihood", "edge-influence", "edge-similarity"]
)
def test_json_field_names(name: str, parties: Path) -> None:
    facts = json.loads(attack(parties, name, "--json"))
    assert {"auc", "tpr_at_0.1pct_fpr", "ci_low", "ci_high", "by_degree"} <= set(facts)
    assert 0 <= facts["ci_low"] <= facts["auc"] <= facts["ci_high"] <= 1
    assert facts["attack"] == name


def test_the_table_and_its_explanation(parties: Path) -> None:
    output = attack(parties, "edge-likelihood", "--pairs", "50")
    assert "edge-likelihood on certified, epsilon 8" in output
    assert "the attacker has features, batches, weights and all other edges" in output


def test_a_folder_that_is_not_a_run_is_refused(parties: Path, tmp_path: Path) -> None:
    arguments = ["attack", "edge-likelihood", "--run", str(tmp_path), "--data", str(parties)]
    done = CliRunner().invoke(app, arguments)
    assert getattr(done.exception, "exit_code", None) == 2
