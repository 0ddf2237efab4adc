"""Membership of nodes in training, on runs that overfit and runs that cannot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.attack.node_membership import attack_membership, attack_settings
from vesper.errors import InputError
from vesper.method.certified.staged_representation import StagedRepresentation
from vesper.session.config import load_config
from vesper.simulation.simulate import simulate

MakeRun = Callable[..., Path]

WIDE = {"width": 64, "batch_size": 24, "learning_rate": 0.02, "dropout": 0.0, "weight_decay": 0.0}


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Forty weak features, so that a network can memorise its training nodes."""
    rng, nodes = np.random.default_rng(0), 180
    labels = np.arange(nodes) % 3
    features = rng.normal(size=(nodes, 40)) + 0.4 * np.eye(40)[labels]
    root = tmp_path / "wide"
    (root / "data").mkdir(parents=True)
    (root / "label").mkdir()
    ids = np.arange(nodes)
    columns = {f"f{k}": features[:, k].astype(np.float32) for k in range(40)}
    pq.write_table(pa.table({"id": ids, **columns}), root / "data" / "nodes.parquet")
    edges = {"src": ids, "dst": (ids + 3) % nodes}
    pq.write_table(pa.table(edges), root / "data" / "edges.parquet")
    splits = rng.permutation(["train"] * 90 + ["val"] * 45 + ["test"] * 45)
    table = pa.table({"id": ids, "label": labels, "split": splits})
    pq.write_table(table, root / "label" / "labels.parquet")
    return root


@pytest.mark.nightly
def test_an_overfit_network_reveals_its_members(wide: Path, tmp_path: Path) -> None:
    config = load_config(None, {**WIDE, "method": "mlp", "epochs": 20, "patience": 20})
    simulate(wide, config, tmp_path / "run")
    result = attack_membership(tmp_path / "run", wide, seed=1)
    assert result.roc.ci_low > 0.5
    assert (result.roc.positives, result.roc.negatives) == (72, 90)
    assert "shadow" in result.knows


def test_an_attack_repeats_on_every_plan(make_run: MakeRun, folders: Path) -> None:
    run = make_run(method="certified", epsilon=1.0, epochs=1)
    result = attack_membership(run, folders, seed=0)
    assert result.plan == "certified"
    assert 0.3 < result.roc.auc < 0.8
    assert result.as_json() == attack_membership(run, folders, seed=0).as_json()
    sampled = attack_membership(make_run(method="gin", epochs=1), folders, seed=0)
    assert sampled.roc.positives == 96


def test_two_classes_are_attacked_by_entropy(folders: Path, tmp_path: Path) -> None:
    both = tmp_path / "two"
    (both / "label").mkdir(parents=True)
    (both / "data").symlink_to(folders / "data")
    table = pq.read_table(folders / "label" / "labels.parquet")
    labels = table.column("label").to_numpy() % 2
    at = table.column_names.index("label")
    pq.write_table(
        table.set_column(at, "label", pa.array(labels)), both / "label" / "labels.parquet"
    )
    config = load_config(None, {"method": "mlp", "epochs": 4, "width": 8, "batch_size": 60})
    simulate(both, config, tmp_path / "run")
    result = attack_membership(tmp_path / "run", both, seed=0)
    assert result.knows == "posteriors on the full graph"
    assert 0.3 < result.roc.auc < 0.75


def test_numbers_have_no_posteriors(folders: Path, tmp_path: Path) -> None:
    both = tmp_path / "numbers"
    (both / "label").mkdir(parents=True)
    (both / "data").symlink_to(folders / "data")
    table = pq.read_table(folders / "label" / "labels.parquet")
    values = table.column("label").to_numpy() + 0.5
    at = table.column_names.index("label")
    pq.write_table(
        table.set_column(at, "label", pa.array(values)), both / "label" / "labels.parquet"
    )
    config = load_config(None, {"method": "mlp", "epochs": 1, "width": 8, "batch_size": 60})
    simulate(both, config, tmp_path / "run")
    with pytest.raises(InputError, match="expected classes as labels"):
        attack_membership(tmp_path / "run", both, seed=0)


SMALL = {"epochs": 1, "width": 8, "batch_size": 60, "epsilon": 4.0, "hops": 1}


def test_a_run_that_protects_nodes_can_be_attacked(folders: Path) -> None:
    config = load_config(None, {**SMALL, "privacy_unit": "node", "max_degree": 40})
    result = attack_settings(config, folders, seed=0)
    assert (result.plan, result.roc.positives) == ("certified", 96)
    with pytest.raises(InputError, match="expected at most 2 neighbours per node"):
        attack_settings(
            load_config(None, {**SMALL, "privacy_unit": "node", "max_degree": 2}), folders, seed=0
        )


def test_models_get_randomised_responses_where_labels_are_protected(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest: list[float] = []
    set_labels = StagedRepresentation.set_labels

    def recording(
        self: StagedRepresentation, nodes: Any, label_posteriors: Any, *rest: Any
    ) -> None:
        largest.append(float(label_posteriors.max()))
        set_labels(self, nodes, label_posteriors, *rest)

    monkeypatch.setattr(StagedRepresentation, "set_labels", recording)
    attack_settings(load_config(None, {**SMALL, "label_epsilon": 1.0}), folders, seed=0)
    keep = np.e / (np.e + 2)  # for three classes
    assert largest == pytest.approx([keep] * len(largest))
    assert len(largest) == 4, "target and shadow, in training and in queries"
