"""`privacy_unit = "node"`: another account, more noise, clipped sums; refused without a proof."""

import math
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.relation import NodeRelation
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

NODES, CLASSES = 200, 3


@pytest.fixture
def folder(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    """A ring with chords: every node has eight neighbours."""
    labels = np.arange(NODES) * CLASSES // NODES
    random = np.random.default_rng(0)
    columns = {f"x{k}": random.normal(size=NODES) + 0.3 * (labels == k) for k in range(CLASSES)}
    src = np.repeat(np.arange(NODES), 4)
    split = [("train", "train", "val", "test")[k % 4] for k in range(NODES)]
    return write_folders(
        tmp_path,
        nodes={"id": range(NODES), **columns},
        edges={"src": src, "dst": (src + np.tile(np.arange(1, 5), NODES)) % NODES},
        labels={"id": range(NODES), "label": labels, "split": split},
    )


def settings(**changes: object) -> Config:
    given = {"epochs": 2, "width": 8, "privacy_unit": "node", "max_degree": 8, "epsilon": 8.0}
    return load_config(None, {**given, **changes})


@pytest.mark.parametrize("method", ["certified", "gap", "progap"])
def test_charged_for_nodes(folder: Path, tmp_path: Path, method: str) -> None:
    given = {"method": method, "label_messages": False}  # the probe protects edges only
    result = simulate(folder, settings(**given), tmp_path / "run")
    by_edge = simulate(folder, settings(**given, privacy_unit="edge"), tmp_path / "edge")
    assert result.privacy.unit == "node"
    assert by_edge.privacy.unit == "edge"
    with closing(open_to_read(tmp_path / "run" / "ledger.sqlite")) as ledger:
        (balance,) = accounts(ledger)
    relation = NodeRelation(max_degree=8, row_norm=math.sqrt(8))
    assert balance.relation == relation
    assert 0.97 * 8.0 <= balance.spent_epsilon() <= 8.0
    assert result.privacy.noise_std is not None
    assert by_edge.privacy.noise_std is not None
    more = result.privacy.noise_std / by_edge.privacy.noise_std
    assert math.sqrt(relation.rows / 2) <= more <= 1.1 * math.sqrt(relation.rows / 2)


def test_a_graph_with_larger_degrees_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at most 7 neighbours per node"):
        simulate(folder, settings(max_degree=7), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ["paper-gin", "edgerand", "lapgraph", "vfgnn"])
def test_methods_that_protect_edges_only_refuse(folder: Path, tmp_path: Path, method: str) -> None:
    with pytest.raises(InputError, match="privacy_unit: expected 'edge'"):
        simulate(folder, settings(method=method), tmp_path / "run")


def test_methods_without_a_guarantee_about_edges_ignore_it(folder: Path, tmp_path: Path) -> None:
    assert simulate(folder, settings(method="mlp"), tmp_path / "mlp").privacy.plan == "edge-free"
    result = simulate(folder, settings(epsilon=math.inf), tmp_path / "inf")
    assert result.privacy.certified_epsilon is None
