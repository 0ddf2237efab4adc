"""Sampled methods on words: read as sparse rows they learn what they learn from dense ones."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.method.baselines import sampled
from vesper.model.sparse_inputs import SparseInputs, SparseRows
from vesper.session.config import load_config
from vesper.session.result import Result
from vesper.simulation.simulate import simulate

NUM_NODES, NUM_WORDS = 240, 50
SETTINGS = {"epochs": 3, "width": 8, "batch_size": 60, "dropout": 0.0, "seed": 3}


@pytest.fixture
def words(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """Each class has five words of its own, of which a node has one; neighbours are alike."""
    rng = np.random.default_rng(0)
    labels = np.arange(NUM_NODES) % 2
    said = np.zeros((NUM_NODES, NUM_WORDS), dtype=np.uint8)
    said[np.arange(NUM_NODES), labels * 5 + rng.integers(0, 5, NUM_NODES)] = 1
    said |= (rng.random(said.shape) < 0.01).astype(np.uint8)
    columns = {f"w{k}": said[:, k] for k in range(NUM_WORDS)}
    splits = [("train", "train", "val", "test")[k // 2 % 4] for k in range(NUM_NODES)]
    return write_folders(
        tmp_path / "words",
        nodes={"id": range(NUM_NODES), **columns},
        edges={"src": range(NUM_NODES), "dst": [(k + 2) % NUM_NODES for k in range(NUM_NODES)]},
        labels={"id": range(NUM_NODES), "label": labels, "split": splits},
    )


@pytest.mark.parametrize("method", ["gin", "paper-gcn", "vfgnn", "edgerand"])
def test_sparse_or_dense_the_model_is_the_same_but_for_rounding(
    method: str, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, of = [], SparseInputs.rows

    def counted(self: SparseInputs, nodes: NDArray[np.int64]) -> SparseRows:
        asked.append(len(nodes))
        return of(self, nodes)

    def run(name: str) -> tuple[Result, dict[str, NDArray[np.float32]]]:
        config = load_config(None, {**SETTINGS, "method": method, "epsilon": 30.0})
        result = simulate(words, config, tmp_path / name)
        return result, dict(np.load(tmp_path / name / "data_party.npz"))

    monkeypatch.setattr(SparseInputs, "rows", counted)
    sparse, weights = run("sparse")
    assert asked
    again, weights_again = run("again")
    assert (again.validation, again.test) == (sparse.validation, sparse.test)
    assert all(np.array_equal(weights[name], weights_again[name]) for name in weights)
    asked.clear()
    monkeypatch.setattr(sampled, "takes_sparse_rows", lambda _: False)
    dense, dense_weights = run("dense")
    assert not asked
    assert sparse.validation == pytest.approx(dense.validation, abs=7)
    for name, weight in weights.items():
        assert np.allclose(weight, dense_weights[name], atol=0.02), name


def test_dropout_keeps_to_dense_inputs(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> SparseRows:
        raise AssertionError("masks fall on all entries")

    monkeypatch.setattr(SparseInputs, "rows", refused)
    config = load_config(None, {**SETTINGS, "method": "gin", "epsilon": "inf", "dropout": 0.2})
    simulate(words, config, tmp_path / "masked")
