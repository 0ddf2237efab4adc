"""Training from a released file: one process, several, larger than memory, invalid files."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import InputError, VesperError
from vesper.export import released_rows
from vesper.export.learner import LearnResult, learn
from vesper.export.learner_ranks import Ranks
from vesper.export.writer import export_features
from vesper.session.config import load_config

NODES = 300
SETTINGS = ["epochs=4", "batch_size=50", "width=8", "seed=5"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, write_folders: Callable[..., Path]) -> Path:
    """A folder with party folders and `released.parquet`."""
    rng = np.random.default_rng(0)
    classes = np.arange(NODES) % 3
    root = tmp_path_factory.mktemp("released")
    pairs = rng.integers(0, NODES // 3, (900, 2)) * 3 + rng.integers(0, 3, 900)[:, None]
    write_folders(
        root,
        nodes={"id": range(NODES), "x": rng.normal(size=NODES), "y": rng.normal(size=NODES)},
        edges={"src": pairs[:, 0], "dst": pairs[:, 1]},
        labels={
            "id": rng.permutation(NODES)[:240],
            "label": np.zeros(240, dtype=np.int64),
            "split": ["train", "train", "val", "test"] * 60,
        },
    )
    table = pq.read_table(root / "label" / "labels.parquet")
    ids = table.column("id").to_numpy()
    table = table.set_column(1, "label", pa.array(classes[ids]))
    pq.write_table(table, root / "label" / "labels.parquet")
    config = load_config(None, {"epsilon": 8.0, "epochs": 3, "width": 8})
    export_features(root, config, root / "released.parquet", simulated=True)
    return root


def train(root: Path, out: Path, **more: object) -> LearnResult:
    settings = dict(pair.split("=") for pair in SETTINGS)
    config = load_config(None, {name: int(value) for name, value in settings.items()} | more)
    return learn(root / "released.parquet", root / "label", config, out, ranks=Ranks())


def test_released_sums_predict_the_class(released: Path, tmp_path: Path) -> None:
    result = train(released, tmp_path / "model", epochs=30)
    assert result.test is not None
    assert result.test > 60  # of three classes; features alone are useless
    assert result.statement["epsilon"] == 8.0
    assert (result.rows, result.processes) == (240, 1)
    written = json.loads((tmp_path / "model" / "result.json").read_text())
    assert written["validation"] == result.validation
    assert set(np.load(tmp_path / "model" / "scale.npz").files) == {"mean", "deviation"}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # no store is left behind


def test_a_file_read_in_small_parts_gives_the_same(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(released, tmp_path / "whole")
    monkeypatch.setattr(released_rows, "BATCH", 7)
    parts = train(released, tmp_path / "parts")
    assert parts.validation == pytest.approx(whole.validation)
    one, other = (np.load(tmp_path / name / "model.npz") for name in ("whole", "parts"))
    assert all(np.allclose(one[key], other[key], atol=1e-4) for key in one.files)


def test_two_processes_train_the_same_model_as_one(released: Path, tmp_path: Path) -> None:
    alone = train(released, tmp_path / "alone")
    arguments = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments += ["-m", "vesper", "learn", "--released", str(released / "released.parquet")]
    arguments += ["--labels", str(released / "label"), "--out", str(tmp_path / "two"), "--json"]
    for each in SETTINGS:
        arguments += ["--set", each]
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["processes"] == 2
    assert result["validation"] == pytest.approx(alone.validation, abs=3.0)
    one, other = (np.load(tmp_path / name / "model.npz") for name in ("alone", "two"))
    assert all(np.allclose(one[key], other[key], atol=1e-4) for key in one.files)


def test_a_changed_file_is_refused(released: Path, tmp_path: Path) -> None:
    for path in released.glob("released*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    table = pq.read_table(tmp_path / "released.parquet")
    pq.write_table(table.slice(0, 200), tmp_path / "released.parquet")
    config = load_config(None, {})
    with pytest.raises(VesperError, match="it was changed"):
        learn(
            tmp_path / "released.parquet",
            released / "label",
            config,
            tmp_path / "out",
            ranks=Ranks(),
        )
    assert not (tmp_path / "out").exists()


def test_labels_of_nodes_that_are_not_in_the_file_are_refused(
    released: Path, tmp_path: Path
) -> None:
    table = pq.read_table(released / "label" / "labels.parquet")
    unknown = table.set_column(0, "id", pa.array(table.column("id").to_numpy() + 200))
    (tmp_path / "label").mkdir()
    pq.write_table(unknown, tmp_path / "label" / "labels.parquet")
    config = load_config(None, {})
    with pytest.raises(InputError, match="labelled nodes are not in"):
        learn(
            released / "released.parquet",
            tmp_path / "label",
            config,
            tmp_path / "out",
            ranks=Ranks(),
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["label"]


def test_more_processes_than_rows_are_refused(released: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="use fewer processes"):
        train(released, tmp_path / "out", batch_size=1)
