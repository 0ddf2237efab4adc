"""Membership of nodes in training, on runs that remember and runs that cannot."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.attack.node_membership import attack_membership
from vesper.errors import InputError
from vesper.run.config import load_config
from vesper.run.simulate import simulate

MakeRun = Callable[..., Path]

OVERFIT = {"epochs": 60, "patience": 60, "dropout": 0.0, "weight_decay": 0.0, "width": 64}


def test_a_network_that_remembers_gives_its_members_away(make_run: MakeRun, folders: Path) -> None:
    run = make_run(method="gin", **OVERFIT)
    found = attack_membership(run, folders, seed=0)
    assert found.roc.ci_low > 0.5
    assert found.roc.positives > 80
    assert "shadow" in found.knows
    assert found.as_json() == attack_membership(run, folders, seed=0).as_json()


def test_a_short_private_run_gives_little_away(make_run: MakeRun, folders: Path) -> None:
    run = make_run(method="vesper", epsilon=1.0, epochs=2, label_messages=False)
    found = attack_membership(run, folders, seed=0)
    assert found.roc.ci_low < 0.6
    assert found.plan == "certified"


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
    found = attack_membership(tmp_path / "run", both, seed=0)
    assert found.knows == "posteriors on the full graph"
    assert 0.3 < found.roc.auc < 0.75


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
    with pytest.raises(InputError, match="expected a run on classes"):
        attack_membership(tmp_path / "run", both, seed=0)
