"""Every aggregator through whole runs: charged alike, named in the ledger, refused by baselines."""

import math
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vesper.errors import InputError
from vesper.method.options import AGGREGATORS_OF_METHOD
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.session.config import load_config
from vesper.session.result import Result
from vesper.simulation.simulate import simulate

ALL = AGGREGATORS_OF_METHOD["certified"]
NODES, CLASSES = 120, 3
NAMES = {"gcn-clamped": "clamped gcn", "gat": "attention", "max": "maximum"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, write_folders: Callable[..., Path]) -> Path:
    """Three communities, and a hub that is connected to all nodes."""
    labels = np.arange(NODES) * CLASSES // NODES
    chance = np.random.default_rng(0)
    columns = {f"x{k}": chance.normal(size=NODES) + (labels == k) for k in range(CLASSES)}
    src = np.concatenate([np.repeat(np.arange(NODES), 3), np.zeros(NODES - 1, dtype=int)])
    dst = np.concatenate(
        [(np.arange(3 * NODES) // 3 + chance.integers(1, 9, 3 * NODES)) % NODES, range(1, NODES)]
    )
    return write_folders(
        tmp_path_factory.mktemp("aggregators"),
        nodes={"id": range(NODES), **columns},
        edges={"src": src, "dst": dst},
        labels={
            "id": range(NODES),
            "label": labels,
            "split": [("train", "train", "val", "test")[k % 4] for k in range(NODES)],
        },
    )


def run(folder: Path, out: Path, **settings: Any) -> Result:
    given = {"epochs": 2, "width": 8, "hops": 2, "epsilon": 4.0, "degree_share": 0.3}
    return simulate(folder, load_config(None, {**given, **settings}), out)


@pytest.mark.parametrize("aggregator", ALL)
def test_all_of_epsilon_is_charged_and_no_more(
    folder: Path, tmp_path: Path, aggregator: str
) -> None:
    result = run(folder, tmp_path / "run", aggregator=aggregator)
    assert result.privacy.certified_epsilon == 4.0
    with closing(open_to_read(tmp_path / "run" / "ledger.sqlite")) as ledger:
        (balance,) = accounts(ledger)
        facts = [entry.facts for entry in ledger.entries() if entry.cost > 0]
    assert 0.99 * 4.0 <= balance.spent_epsilon() <= 4.0
    assert balance.spent.min() == balance.spent.max()
    probe, *hops = facts
    assert "aggregation" not in probe
    assert [each.get("aggregation") for each in hops] == [NAMES.get(aggregator)] * 2


@pytest.mark.parametrize("aggregator", ALL)
def test_all_run_without_privacy(folder: Path, tmp_path: Path, aggregator: str) -> None:
    result = run(folder, tmp_path / "run", aggregator=aggregator, epsilon=math.inf)
    assert result.privacy.plan == "none"
    assert 0 <= result.test <= 100


@pytest.mark.parametrize("aggregator", ["gcn", "mean"])
def test_nodes_are_protected_where_the_door_sums(
    folder: Path, tmp_path: Path, aggregator: str
) -> None:
    node = {"privacy_unit": "node", "max_degree": NODES - 1}
    result = run(folder, tmp_path / "run", aggregator=aggregator, **node)
    assert (result.privacy.unit, result.privacy.certified_epsilon) == ("node", 4.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"method": "gap", "aggregator": "gat"},
            "expected .* for method 'gap'",
        ),
        ({"method": "mlp", "aggregator": "max"}, "expected only the built-in one for method 'mlp'"),
        ({"method": "vfgnn", "aggregator": "mean"}, "expected 'gin' or 'gcn' for method 'vfgnn'"),
        ({"aggregator": "gat", "privacy_unit": "node", "max_degree": 119}, "privacy_unit 'node'"),
    ],
)
def test_incompatible_settings_are_refused_before_a_file_is_written(
    folder: Path, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(folder, tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()
