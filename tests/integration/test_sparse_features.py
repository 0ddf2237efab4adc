"""Sampled methods on word features learn the same from sparse rows as from dense ones."""

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
    """Each class has five words of its own; a node has one of them; neighbours share a class."""
    rng = np.random.default_rng(0)
    labels = np.arange(NUM_NODES) % 2
    has_word = np.zeros((NUM_NODES, NUM_WORDS), dtype=np.uint8)
    has_word[np.arange(NUM_NODES), labels * 5 + rng.integers(0, 5, NUM_NODES)] = 1
    has_word |= (rng.random(has_word.shape) < 0.01).astype(np.uint8)
    columns = {f"w{k}": has_word[:, k] for k in range(NUM_WORDS)}
    splits = [("train", "train", "val", "test")[k // 2 % 4] for k in range(NUM_NODES)]
    return write_folders(
        tmp_path / "words",
        nodes={"id": range(NUM_NODES), **columns},
        edges={"src": range(NUM_NODES), "dst": [(k + 2) % NUM_NODES for k in range(NUM_NODES)]},
        labels={"id": range(NUM_NODES), "label": labels, "split": splits},
    )


@pytest.mark.parametrize("method", ["gin", "paper-gcn", "vfgnn", "edgerand"])
def test_sparse_and_dense_models_are_equal_up_to_rounding(
    method: str, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, original = [], SparseInputs.rows

    def counted(self: SparseInputs, nodes: NDArray[np.int64]) -> SparseRows:
        counts.append(len(nodes))
        return original(self, nodes)

    def run(name: str) -> tuple[Result, dict[str, NDArray[np.float32]]]:
        config = load_config(None, {**SETTINGS, "method": method, "epsilon": 30.0})
        result = simulate(words, config, tmp_path / name)
        return result, dict(np.load(tmp_path / name / "data_party.npz"))

    monkeypatch.setattr(SparseInputs, "rows", counted)
    sparse, weights = run("sparse")
    assert counts
    again, weights_again = run("again")
    assert (again.validation, again.test) == (sparse.validation, sparse.test)
    assert all(np.array_equal(weights[name], weights_again[name]) for name in weights)
    counts.clear()
    monkeypatch.setattr(sampled, "takes_sparse_rows", lambda _: False)
    dense, dense_weights = run("dense")
    assert not counts
    assert sparse.validation == pytest.approx(dense.validation, abs=7)
    for name, weight in weights.items():
        assert np.allclose(weight, dense_weights[name], atol=0.02), name


def test_dropout_uses_dense_inputs(
    words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> SparseRows:
        raise AssertionError("masks fall on all entries")

    monkeypatch.setattr(SparseInputs, "rows", refused)
    config = load_config(None, {**SETTINGS, "method": "gin", "epsilon": "inf", "dropout": 0.2})
    simulate(words, config, tmp_path / "masked")
